#include <sgdph/curvature_optimizer.h>

#include "curvature_impl.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace sgdph {
namespace {

/// Of the due parameters this rank's that `inputs` allows, which is all if there are none. One that has been frozen
/// since the window began is left out.
std::vector<bool> select(const std::vector<DueParameter>& due, const std::vector<at::Tensor>& inputs) {
  std::unordered_set<const at::TensorImpl*> allowed;
  for (const auto& input : inputs) allowed.insert(input.unsafeGetTensorImpl());
  std::vector<bool> selected;
  selected.reserve(due.size());
  for (const auto& one : due) {
    const bool trains = one.here && one.parameter.requires_grad();
    selected.push_back(trains && (inputs.empty() || allowed.count(one.parameter.unsafeGetTensorImpl()) != 0));
  }
  return selected;
}

std::vector<at::Tensor> selected_parameters(const std::vector<DueParameter>& due, const std::vector<bool>& selected) {
  std::vector<at::Tensor> parameters;
  for (size_t i = 0; i < due.size(); ++i) {
    if (selected[i]) parameters.push_back(due[i].parameter);
  }
  return parameters;
}

/// The gradients of selected parameters, in the place of each; undefined for the others.
GraphGradients spread(GraphGradients found, const std::vector<bool>& selected) {
  GraphGradients all;
  all.wanted.resize(selected.size());
  all.lost.resize(selected.size());
  all.sizes = std::move(found.sizes);
  size_t next = 0;
  for (size_t i = 0; i < selected.size(); ++i) {
    if (!selected[i]) continue;
    all.wanted[i] = std::move(found.wanted[next]);
    all.lost[i] = found.lost[next++];
  }
  return all;
}

}  // namespace

void BackwardOptions::check(const std::string& who) const {
  TORCH_CHECK(
      std::isfinite(scale_) && scale_ != 0, who, ": scale must be finite and not 0, got ", scale_,
      "; it is what the loss was multiplied by");
  TORCH_CHECK(
      !scale_tensor_.defined() || (scale_ == 1 && scale_tensor_.numel() == 1), who,
      ": scale_tensor must be a scalar and stands in place of scale, got shape ", scale_tensor_.sizes(), " and scale ",
      scale_);
  TORCH_CHECK(
      std::isfinite(represents_) && represents_ > 0, who, ": represents must be finite and positive, got ", represents_,
      "; use measure(false) for a loss whose curvature does not count");
}

CurvatureOptimizer::CurvatureOptimizer(
    const char* name, std::vector<torch::optim::OptimizerParamGroup> groups,
    std::unique_ptr<torch::optim::OptimizerOptions> defaults)
    : OptimizerBase(name, std::move(groups), std::move(defaults)), impl_(std::make_unique<Impl>()) {}

CurvatureOptimizer::CurvatureOptimizer(CurvatureOptimizer&& other) noexcept = default;
CurvatureOptimizer::~CurvatureOptimizer() = default;

void CurvatureOptimizer::groups_changed() {
  impl_->rejected.clear();
  impl_->not_measurable.clear();
  const bool spoiled = impl_->window.begun || impl_->window.spoiled;
  discard();
  impl_->window.spoiled = spoiled;
  // From the beginning, so that a plain backward pass before the first call is seen as well.
  impl_->watch.watch(trainable_parameters());
}

// --- Calls before a step -------------------------------------------------------------------------------------------

void CurvatureOptimizer::Impl::begin_call(
    CurvatureOptimizer& self, const std::string& who, const at::Tensor& loss, const BackwardOptions& options) {
  self.check();
  check_loss(loss, who);
  options.check(who);
  if (watch.cleared() || (window.spoiled && !has_gradients(self))) window = {};
  watch.watch(self.trainable_parameters());
}

bool CurvatureOptimizer::Impl::has_gradients(const CurvatureOptimizer& self) {
  const auto parameters = self.trainable_parameters();
  return std::any_of(parameters.begin(), parameters.end(), [](const at::Tensor& parameter) {
    const auto& gradient = parameter.grad();
    return gradient.defined() && (gradient.is_sparse() || gradient.detach().ne(0).any().item<bool>());
  });
}

void CurvatureOptimizer::Impl::open_window(const CurvatureOptimizer& self) {
  if (window.is_open()) return;
  auto due = self.due();
  const bool divided = std::any_of(due.begin(), due.end(), [](const DueParameter& one) { return one.share < 1; });
  TORCH_CHECK(
      !divided || all_reduce, self.name(), ": ", ranks,
      " ranks measure different parameters, and no function brings their curvature together; call set_all_reduce");
  std::vector<Probes> probes;
  for (const auto& one : due) probes.push_back(self.probes_of(one));
  window.open(std::move(due), std::move(probes), self.joint());
}

void CurvatureOptimizer::backward(const at::Tensor& loss, bool retain_graph) {
  backward(loss, BackwardOptions().retain_graph(retain_graph));
}

void CurvatureOptimizer::backward(const at::Tensor& loss, const BackwardOptions& options) {
  const auto who = name() + "::backward";
  impl_->begin_call(*this, who, loss, options);
  auto& window = impl_->window;
  auto& watch = impl_->watch;
  TORCH_CHECK(!watch.others_left(), who, ": ", kBothWays);

  std::vector<bool> selected;
  GraphRequest request;
  if (options.measure() && !window.is_explicit && !window.spoiled) {
    impl_->open_window(*this);
    selected = select(window.due(), options.inputs());
    request.wanted = selected_parameters(window.due(), selected);
  }
  window.begun = true;
  try {
    if (request.wanted.empty()) {
      const GradientWatch::Ours ours(watch);
      torch::autograd::backward({loss}, {}, options.retain_graph(), /*create_graph=*/false, options.inputs());
    } else {
      request.inputs = options.inputs();
      request.graph_is_ours = !options.retain_graph();
      if (window.has_second_probe()) request.measured = trainable_parameters();
      impl_->backward_and_measure(loss, options, request, selected);
    }
  } catch (...) {
    window = {};  // gradients are half added, and have to be cleared
    throw;
  }
  // On every step alike, and as `loss.backward()`: the graph is gone, also where this optimizer had no part in it.
  if (!options.retain_graph()) release_graph(loss, options.inputs());
}

void CurvatureOptimizer::Impl::backward_and_measure(
    const at::Tensor& loss, const BackwardOptions& options, const GraphRequest& request,
    const std::vector<bool>& selected) {
  GraphGradients found;
  {
    const GradientWatch::Ours ours(watch);
    found = backward_with_graph(loss, request);
  }
  const auto kept = found.kept;
  torch::NoGradGuard no_grad;
  window.add(spread(std::move(found), selected), Weight(options), options.retain_graph());
  window.by_backward = true;
}

void CurvatureOptimizer::update_curvature(const at::Tensor& loss, const BackwardOptions& options) {
  const auto who = name() + "::update_curvature";
  impl_->begin_call(*this, who, loss, options);
  TORCH_CHECK(options.measure(), who, ": with measure(false) there is nothing to do; leave the call out");
  auto& window = impl_->window;
  TORCH_CHECK(
      !window.by_backward, who,
      ": optimizer.backward has measured curvature for this step, and it would count twice; pass "
      "BackwardOptions().measure(false) there, or call update_curvature before it");
  if (window.spoiled) return;
  impl_->open_window(*this);
  window.is_explicit = window.begun = true;
  impl_->watch.hold();  // an abandoned batch may get no further than this
  const auto selected = select(window.due(), options.inputs());
  GraphRequest request;
  request.wanted = selected_parameters(window.due(), selected);
  if (request.wanted.empty()) return;
  const auto trainable = trainable_parameters();
  if (window.has_second_probe()) request.measured = trainable;
  auto found = gradients_with_graph(loss, request, trainable);
  const auto kept = found.kept;
  torch::NoGradGuard no_grad;
  window.add(spread(std::move(found), selected), Weight(options), /*retain_graph=*/true);
}

void CurvatureOptimizer::discard() {
  impl_->window = {};
  impl_->watch.forget();
}

bool CurvatureOptimizer::curvature_due() const {
  // Brings what is derived from the groups in line with them, and changes nothing else.
  const_cast<CurvatureOptimizer*>(this)->notice_changes();
  return !(impl_->window.is_open() ? impl_->window.due() : due()).empty();
}

void CurvatureOptimizer::set_probe_source(ProbeSource source) {
  impl_->probe_source = std::move(source);
}

bool CurvatureOptimizer::has_probe_source() const {
  return static_cast<bool>(impl_->probe_source);
}

void CurvatureOptimizer::use_all_reduce(AllReduce function) {
  impl_->all_reduce = std::move(function);
}

void CurvatureOptimizer::set_ranks(int64_t rank, int64_t ranks) {
  TORCH_CHECK(
      0 <= rank && rank < ranks, name(), "::set_ranks: the rank must lie in [0, ranks), got ", rank, " of ", ranks);
  TORCH_CHECK(
      !impl_->window.is_open(), name(),
      "::set_ranks: curvature has been measured for the step under way; call it after step() or zero_grad()");
  impl_->rank = rank;
  impl_->ranks = ranks;
}

int64_t CurvatureOptimizer::rank() const {
  return impl_->rank;
}

int64_t CurvatureOptimizer::ranks() const {
  return impl_->ranks;
}

at::Tensor CurvatureOptimizer::probe_from_source(const at::Tensor& parameter) const {
  auto probe = impl_->probe_source(parameter);
  TORCH_CHECK(
      probe.defined() && probe.sizes() == parameter.sizes() && probe.scalar_type() == parameter.scalar_type(), name(),
      ": the probe source must return a tensor of the parameter's shape ", parameter.sizes(), " and type ",
      parameter.scalar_type());
  return probe.detach().to(parameter.device());
}

std::vector<at::Tensor> CurvatureOptimizer::trainable_parameters() const {
  std::vector<at::Tensor> parameters;
  for (const auto& group : param_groups_) {
    for (const auto& parameter : group.params()) {
      if (parameter.requires_grad()) parameters.push_back(parameter);
    }
  }
  return parameters;
}

}  // namespace sgdph
