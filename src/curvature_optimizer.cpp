#include <sgdph/curvature_optimizer.h>

#include <sgdph/detail/finite.h>
#include <sgdph/hessian.h>

#include "autograd.h"
#include "gradient_watch.h"
#include "product_plan.h"
#include "window.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace sgdph {
namespace {

constexpr int64_t kStepsToNotice = 20;
constexpr int64_t kRejectionsToNotice = 3;

constexpr const char* kBothWays =
    "loss.backward(), or another optimizer's backward, has added gradients for this step as well; run each loss's "
    "backward once, by optimizer.backward(loss), and pass BackwardOptions().measure(false) for a loss whose curvature "
    "is not to count, or inputs(...) to the other one";

at::Tensor largest(const std::vector<at::Tensor>& parameters) {
  at::Tensor found;
  for (const auto& parameter : parameters) {
    if (parameter.is_leaf() && (!found.defined() || parameter.numel() > found.numel())) found = parameter;
  }
  return found;
}

/// Of the due parameters those that `inputs` allows, which is all if there are none.
std::vector<bool> select(const std::vector<DueParameter>& due, const std::vector<at::Tensor>& inputs) {
  std::unordered_set<const at::TensorImpl*> allowed;
  for (const auto& input : inputs) allowed.insert(input.unsafeGetTensorImpl());
  std::vector<bool> selected;
  selected.reserve(due.size());
  for (const auto& one : due) {
    selected.push_back(inputs.empty() || allowed.count(one.parameter.unsafeGetTensorImpl()) != 0);
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
std::vector<at::Tensor> spread(std::vector<at::Tensor> gradients, const std::vector<bool>& selected) {
  std::vector<at::Tensor> all(selected.size());
  auto next = gradients.begin();
  for (size_t i = 0; i < selected.size(); ++i) {
    if (selected[i]) all[i] = std::move(*next++);
  }
  return all;
}

/// The largest of the parameters whose gradient is defined; undefined if there is none.
at::Tensor largest_reached(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& gradients) {
  std::vector<at::Tensor> reached;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (gradients[i].defined()) reached.push_back(parameters[i]);
  }
  return largest(reached);
}

std::vector<at::Tensor> without(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& some) {
  std::unordered_set<const at::TensorImpl*> left_out;
  for (const auto& parameter : some) left_out.insert(parameter.unsafeGetTensorImpl());
  std::vector<at::Tensor> rest;
  for (const auto& parameter : parameters) {
    if (left_out.count(parameter.unsafeGetTensorImpl()) == 0) rest.push_back(parameter);
  }
  return rest;
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

struct CurvatureOptimizer::Pending {
  Window window;
  GradientWatch watch;  ///< tells when the gradients have been cleared, and with them the window
  std::unordered_map<const at::TensorImpl*, int64_t> rejected;  ///< estimates in a row
  int64_t unmeasured_steps = 0;                                 ///< in a row, with something due
};

CurvatureOptimizer::CurvatureOptimizer(
    const char* name, std::vector<torch::optim::OptimizerParamGroup> groups,
    std::unique_ptr<torch::optim::OptimizerOptions> defaults)
    : OptimizerBase(name, std::move(groups), std::move(defaults)), pending_(std::make_unique<Pending>()) {}

CurvatureOptimizer::CurvatureOptimizer(CurvatureOptimizer&& other) noexcept = default;
CurvatureOptimizer::~CurvatureOptimizer() = default;

void CurvatureOptimizer::groups_changed() {
  pending_->rejected.clear();
  discard();
  // From the beginning, so that a plain backward pass before the first call is seen as well.
  if (const auto parameter = largest(trainable_parameters()); parameter.defined()) pending_->watch.follow(parameter);
}

// --- Calls before a step -------------------------------------------------------------------------------------------

void CurvatureOptimizer::begin_call(const std::string& who, const at::Tensor& loss, const BackwardOptions& options) {
  check();
  check_loss(loss, who);
  options.check(who);
  auto& watch = pending_->watch;
  if (gradients_cleared()) pending_->window = {};
  if (pending_->window.measured || watch.passed_ours()) return;
  if (const auto parameter = largest(trainable_parameters()); parameter.defined()) watch.follow(parameter);
}

bool CurvatureOptimizer::gradients_cleared() {
  return pending_->watch.cleared([this] {
    const auto parameters = trainable_parameters();
    return std::any_of(parameters.begin(), parameters.end(), [](const at::Tensor& parameter) {
      const auto& gradient = parameter.grad();
      return gradient.defined() && (gradient.is_sparse() || gradient.detach().ne(0).any().item<bool>());
    });
  });
}

void CurvatureOptimizer::open_window() {
  auto& window = pending_->window;
  if (window.is_open()) return;
  auto due = this->due();
  std::vector<Probes> probes;
  for (const auto& one : due) probes.push_back(probes_of(one));
  window.open(std::move(due), std::move(probes), joint());
}

void CurvatureOptimizer::backward(const at::Tensor& loss, bool retain_graph) {
  backward(loss, BackwardOptions().retain_graph(retain_graph));
}

void CurvatureOptimizer::backward(const at::Tensor& loss, const BackwardOptions& options) {
  const auto who = name() + "::backward";
  begin_call(who, loss, options);
  auto& window = pending_->window;
  auto& watch = pending_->watch;
  TORCH_CHECK(!watch.passed_others(), who, ": ", kBothWays);

  std::vector<bool> selected;
  GraphRequest request;
  if (options.measure() && !window.is_explicit) {
    open_window();
    selected = select(window.due(), options.inputs());
    request.wanted = selected_parameters(window.due(), selected);
  }
  try {
    if (request.wanted.empty()) {
      const GradientWatch::Ours ours(watch);
      torch::autograd::backward({loss}, {}, options.retain_graph(), /*create_graph=*/false, options.inputs());
    } else {
      request.inputs = options.inputs();
      request.graph_is_ours = !options.retain_graph();
      if (window.has_second_probe()) request.measured = trainable_parameters();
      backward_and_measure(loss, options, request, selected);
    }
  } catch (...) {
    window = {};  // gradients are half added, and have to be cleared
    throw;
  }
  // On every step alike, and as `loss.backward()`: the graph is gone, also where this optimizer had no part in it.
  if (!options.retain_graph()) release_graph(loss);
}

void CurvatureOptimizer::backward_and_measure(
    const at::Tensor& loss, const BackwardOptions& options, const GraphRequest& request,
    const std::vector<bool>& selected) {
  auto& window = pending_->window;
  auto& watch = pending_->watch;
  GraphGradients found;
  {
    const GradientWatch::Ours ours(watch);
    found = backward_with_graph(loss, request);
  }
  const auto reached = largest_reached(request.wanted, found.wanted);
  torch::NoGradGuard no_grad;
  window.add(spread(std::move(found.wanted), selected), found.sizes, Weight(options), options.retain_graph());
  window.by_backward = true;
  // The largest parameter of all may not be in this loss.
  if (!watch.passed_ours() && reached.defined()) watch.follow(reached);
}

void CurvatureOptimizer::update_curvature(const at::Tensor& loss, const BackwardOptions& options) {
  const auto who = name() + "::update_curvature";
  begin_call(who, loss, options);
  TORCH_CHECK(options.measure(), who, ": with measure(false) there is nothing to do; leave the call out");
  auto& window = pending_->window;
  TORCH_CHECK(
      !window.by_backward, who,
      ": optimizer.backward has measured curvature for this step, and it would count twice; pass "
      "BackwardOptions().measure(false) there, or call update_curvature before it");
  open_window();
  window.is_explicit = true;
  const auto selected = select(window.due(), options.inputs());
  const auto wanted = selected_parameters(window.due(), selected);
  if (wanted.empty()) return;

  // The wanted ones come first, the others are for the size of their gradients.
  auto asked = wanted;
  const bool with_sizes = window.has_second_probe();
  if (with_sizes) {
    const auto others = without(trainable_parameters(), wanted);
    asked.insert(asked.end(), others.begin(), others.end());
  }
  std::optional<ProductPlan> plan(std::in_place, loss, wanted, /*graph_is_ours=*/false);
  auto gradients = sgdph::gradients(loss, asked, /*create_graph=*/true, /*retain_graph=*/true);
  plan.reset();
  torch::NoGradGuard no_grad;
  std::vector<at::Tensor> sizes;
  for (const auto& gradient : gradients) {
    sizes.push_back(with_sizes && gradient.defined() ? root_mean_square(gradient) : at::Tensor());
  }
  if (const auto reached = largest_reached(asked, gradients); reached.defined()) pending_->watch.follow(reached);
  gradients.resize(wanted.size());
  window.add(spread(std::move(gradients), selected), sizes, Weight(options), /*retain_graph=*/true);
}

void CurvatureOptimizer::discard() {
  pending_->window = {};
  pending_->watch.forget();
}

bool CurvatureOptimizer::curvature_due() const {
  // Brings what is derived from the groups in line with them, and changes nothing else.
  const_cast<CurvatureOptimizer*>(this)->notice_changes();
  return !(pending_->window.is_open() ? pending_->window.due() : due()).empty();
}

// --- The step ------------------------------------------------------------------------------------------------------

void CurvatureOptimizer::average_window() {
  if (!all_reduce_) return;
  open_window();  // a rank that measured nothing joins in as well
  pending_->window.average([this](at::Tensor& tensor) { all_reduce(tensor); });
}

Measurements CurvatureOptimizer::close_window() {
  auto& window = pending_->window;
  auto& watch = pending_->watch;
  if (gradients_cleared()) window = {};
  TORCH_CHECK(!watch.passed_ours() || !watch.passed_others(), name(), "::step: ", kBothWays);
  average_window();
  auto result = window.take();
  summary_.products = result.products;
  check_finite(result);
  notice_unmeasured(window.is_open() ? window.due() : due(), result.measured);
  discard();
  return result;
}

void CurvatureOptimizer::skip_update() {
  average_window();
  summary_.products = pending_->window.take().products;
  discard();
}

void CurvatureOptimizer::check_finite(Measurements& measurements) {
  std::vector<at::Tensor> values;
  for (const auto& one : measurements.found) {
    values.push_back(one.estimate);
    values.push_back(one.second_product);
  }
  // One look at all of them, as a rule.
  const bool all_finite = detail::count_non_finite(values) == 0;
  for (auto& one : measurements.found) {
    const auto non_finite = all_finite ? 0 : detail::count_non_finite({one.estimate, one.second_product});
    auto& in_a_row = pending_->rejected[one.of.parameter.unsafeGetTensorImpl()];
    one.finite = non_finite == 0;
    in_a_row = one.finite ? 0 : in_a_row + 1;
    if (one.finite) continue;
    summary_.non_finite += non_finite;
    ++summary_.rejected_estimates;
    if (in_a_row == kRejectionsToNotice) {
      TORCH_WARN(
          name(), ": the curvature of ", label_of(one.of), " was not finite ", kRejectionsToNotice,
          " times in a row and is not used; the loss has no second derivative there");
    }
  }
}

/// Says once that curvature that is due is never measured.
void CurvatureOptimizer::notice_unmeasured(const std::vector<DueParameter>& due, bool measured) {
  auto& steps = pending_->unmeasured_steps;
  if (measured) {
    steps = 0;
    return;
  }
  const auto moved = [](const DueParameter& one) { return moves(one.parameter); };
  if (std::none_of(due.begin(), due.end(), moved) || ++steps != kStepsToNotice) return;
  TORCH_WARN(
      name(), ": ", kStepsToNotice,
      " steps without a measurement of the curvature that was due; call optimizer.backward(loss) in place of "
      "loss.backward(), or optimizer.update_curvature(loss) after zero_grad() and before the step");
}

int64_t CurvatureOptimizer::rejected_in_a_row(const at::Tensor& parameter) const {
  const auto found = pending_->rejected.find(parameter.unsafeGetTensorImpl());
  return found == pending_->rejected.end() ? 0 : found->second;
}

/// How notices call a parameter.
std::string CurvatureOptimizer::label_of(const DueParameter& due) const {
  if (auto name = name_of(due.parameter); !name.empty()) return name;
  auto position = due.position;
  size_t group = 0;
  while (position >= param_groups_[group].params().size()) position -= param_groups_[group++].params().size();
  return "group " + std::to_string(group) + " parameter " + std::to_string(position);
}

at::Tensor CurvatureOptimizer::probe_from_source(const at::Tensor& parameter) const {
  auto probe = probe_source_(parameter);
  TORCH_CHECK(
      probe.defined() && probe.sizes() == parameter.sizes() && probe.scalar_type() == parameter.scalar_type(), name(),
      ": the probe source must return a tensor of the parameter's shape ", parameter.sizes(), " and type ",
      parameter.scalar_type());
  return probe.detach().to(parameter.device());
}

void CurvatureOptimizer::all_reduce(at::Tensor& tensor) const {
  const auto sizes = tensor.sizes().vec();
  all_reduce_(tensor);
  TORCH_CHECK(
      tensor.defined() && tensor.sizes() == sizes, name(), ": the all-reduce function must keep the tensor's shape ",
      at::IntArrayRef(sizes));
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
