#include "autograd.h"

#include <sgdph/hessian.h>

#include "detail/hooks.h"
#include "product_plan.h"

#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace sgdph {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::variable_list;

void refuse_sparse(const at::Tensor& gradient) {
  TORCH_CHECK(
      gradient.layout() == at::kStrided, "sgdph: sparse gradients are not supported; construct the embedding with ",
      "sparse(false)");
}

/// Whether somebody else holds the gradient's memory; the tensor it is a view of is part of itself.
bool is_shared(const at::Tensor& gradient) {
  const bool view = gradient.is_view();
  return gradient.use_count() > 1 || (view && gradient._base().use_count() > 1) ||
         gradient.storage().use_count() > (view ? 2 : 1);
}

/// What is to become of a leaf's gradient; null: nothing.
struct Place {
  at::Tensor* wanted = nullptr;
  char* lost = nullptr;
  at::Tensor* size = nullptr;
};

/// Stands before a leaf: keeps the gradient with its graph if that is wanted, and hands it on without.
class Handover final : public detail::PreHook {
 public:
  /// `inner`: what comes is of a pass that some node runs for itself. `closed`: it is not handed on.
  Handover(AccumulateGrad* node, const Place& place, bool inner, bool closed)
      : place_(place),
        inner_(inner),
        closed_(closed),
        // Who may change in place what shares memory with the gradient kept.
        changed_before_(detail::has_changing_hooks(node->variable)),
        changed_after_(!node->post_hooks().empty()) {}

  variable_list operator()(const variable_list& gradients) override {
    const auto& gradient = gradients[0];
    if (!gradient.defined()) return gradients;
    if (place_.size != nullptr) {
      const auto size = root_mean_square(gradient);
      *place_.size = place_.size->defined() ? at::maximum(*place_.size, size) : size;
    }
    keep(gradient);
    if (closed_) return {at::Tensor()};
    if (!gradient.requires_grad()) return gradients;
    const bool shared = is_shared(gradient);
    auto plain = gradient.detach();
    if (place_.wanted != nullptr && changed_before_) plain = plain.clone();
    // With a second owner the engine makes a copy instead of giving the tensor itself to the leaf.
    if (shared || (place_.wanted != nullptr && changed_after_)) second_owner_ = plain;
    return {std::move(plain)};
  }

 private:
  void keep(const at::Tensor& gradient) {
    if (place_.wanted == nullptr) return;
    refuse_sparse(gradient);
    // A pass comes by once. Another gradient is of one that a node, a checkpoint, runs for itself, without a graph.
    const bool lost = inner_ || place_.wanted->defined();
    if (lost) *place_.lost = 1;
    *place_.wanted = lost ? gradient.detach() : gradient;
  }

  Place place_;
  bool inner_, closed_;
  bool changed_before_, changed_after_;
  at::Tensor second_owner_;
};

using Places = std::unordered_map<const at::TensorImpl*, Place>;

Places places_of(const GraphRequest& request, GraphGradients& gradients) {
  gradients.wanted.resize(request.wanted.size());
  gradients.lost.resize(request.wanted.size());
  gradients.sizes.resize(request.measured.size());
  Places places;
  for (size_t i = 0; i < request.wanted.size(); ++i) {
    auto& place = places[request.wanted[i].unsafeGetTensorImpl()];
    place.wanted = &gradients.wanted[i];
    place.lost = &gradients.lost[i];
  }
  for (size_t i = 0; i < request.measured.size(); ++i) {
    places[request.measured[i].unsafeGetTensorImpl()].size = &gradients.sizes[i];
  }
  return places;
}

/// A Handover before some leaves, for a while.
class Handovers {
 public:
  explicit Handovers(Places places) : places_(std::move(places)) {}

  void add(AccumulateGrad* leaf) {
    auto hook = make(leaf, /*inner=*/false, /*closed=*/false);
    hooks_.emplace_back(leaf, hook.get());
    detail::add_first_hook(*leaf, std::move(hook));
  }
  /// Before these leaves, for what passes within nodes bring to them.
  void add_inner(const std::vector<at::Tensor>& leaves, bool closed) {
    for (const auto& leaf : leaves) {
      // Owned for as long as the hook is there: a leaf of no graph has no node.
      if (!leaf.is_leaf() || !leaf.requires_grad()) continue;
      nodes_.push_back(torch::autograd::impl::gradient_edge(leaf).function);
      auto* node = dynamic_cast<AccumulateGrad*>(nodes_.back().get());
      auto hook = make(node, /*inner=*/true, closed);
      hooks_.emplace_back(node, hook.get());
      // Where a gradient that `autograd::grad` is asked for does not come by.
      detail::add_hook_of_run(*node, std::move(hook));
    }
  }
  ~Handovers() {
    for (const auto& [leaf, ours] : hooks_) {
      detail::remove_hooks(*leaf, [ours = ours](const detail::PreHook* hook) { return hook == ours; });
    }
  }
  Handovers(const Handovers&) = delete;
  Handovers& operator=(const Handovers&) = delete;

 private:
  std::unique_ptr<Handover> make(AccumulateGrad* leaf, bool inner, bool closed) const {
    const auto place = places_.find(leaf->variable.unsafeGetTensorImpl());
    return std::make_unique<Handover>(leaf, place == places_.end() ? Place() : place->second, inner, closed);
  }

  Places places_;
  std::vector<detail::NodePtr> nodes_;
  std::vector<std::pair<AccumulateGrad*, const detail::PreHook*>> hooks_;
};

/// Those of the tensors that are not among the others.
std::vector<at::Tensor> without(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& others) {
  std::unordered_set<const at::TensorImpl*> left_out;
  for (const auto& other : others) left_out.insert(other.unsafeGetTensorImpl());
  std::vector<at::Tensor> rest;
  for (const auto& tensor : tensors) {
    if (left_out.count(tensor.unsafeGetTensorImpl()) == 0) rest.push_back(tensor);
  }
  return rest;
}

/// Takes the graph off what came through a node that has lost a part of it.
void mark_lost(const ProductPlan& plan, const std::vector<at::Tensor>& wanted, GraphGradients& gradients) {
  const auto lost = plan.lost(wanted);
  for (size_t i = 0; i < lost.size(); ++i) {
    if (lost[i] != 0) gradients.lost[i] = 1;
    if (gradients.lost[i] != 0 && gradients.wanted[i].defined()) gradients.wanted[i] = gradients.wanted[i].detach();
  }
}

}  // namespace

void check_loss(const at::Tensor& loss, const std::string& who) {
  TORCH_CHECK(
      !c10::InferenceMode::is_enabled(), who,
      ": gradients made in InferenceMode cannot be used; leave the mode before this call");
  TORCH_CHECK(loss.defined(), who, ": the loss is undefined");
  TORCH_CHECK(
      loss.numel() == 1, who, ": the loss must be a scalar, got shape ", loss.sizes(),
      "; reduce it with mean() or sum()");
  TORCH_CHECK(
      loss.requires_grad(), who, ": the loss has no graph; compute it from the parameters with gradients enabled");
}

void release_graph(const at::Tensor& loss, const std::vector<at::Tensor>& inputs) {
  using torch::autograd::Node;
  std::vector<Node*> nodes{loss.grad_fn().get()};
  std::unordered_map<Node*, std::vector<Node*>> callers{{nodes.front(), {}}};
  if (nodes.front() == nullptr) return;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const auto& edge : nodes[i]->next_edges()) {
      if (!edge.is_valid()) continue;
      auto [entry, unseen] = callers.try_emplace(edge.function.get());
      entry->second.push_back(nodes[i]);
      if (unseen) nodes.push_back(edge.function.get());
    }
  }
  std::unordered_set<Node*> leading;
  std::vector<Node*> open;
  for (const auto& input : inputs) {
    auto* node = torch::autograd::impl::gradient_edge(input).function.get();
    if (callers.count(node) != 0) open.push_back(node);
  }
  while (!open.empty()) {
    auto* node = open.back();
    open.pop_back();
    if (!leading.insert(node).second) continue;
    for (auto* caller : callers[node]) open.push_back(caller);
  }
  // What made an input that is no leaf is not run for it.
  for (const auto& input : inputs) {
    if (!input.is_leaf()) leading.erase(input.grad_fn().get());
  }
  for (auto* node : nodes) {
    if (inputs.empty() || leading.count(node) != 0) node->release_variables();
  }
}

GraphGradients backward_with_graph(const at::Tensor& loss, const GraphRequest& request) {
  GraphGradients gradients;
  for (const auto& input : request.inputs) {
    if (!input.is_leaf()) input.retain_grad();  // as the pass would, in time for what follows
  }
  const auto nodes = detail::graph_of({loss});
  gradients.kept = std::make_shared<detail::KeptGradients>();
  // Behind the plan's hooks, which decide what has a graph.
  const detail::SeeGradientsGiven see(nodes, gradients.kept);
  // The engine itself records nothing, so that leaves, and reducers behind them, see an ordinary pass; the plan turns
  // recording on for the nodes that need it.
  ProductPlan plan(loss, request.wanted, request.graph_is_ours);
  const detail::RetainedGradients retained(nodes, detail::RetainedGradients::Keeps::Plain);
  Handovers handovers(places_of(request, gradients));
  std::vector<at::Tensor> reached;
  for (auto* leaf : plan.leaves()) {
    handovers.add(leaf);
    reached.push_back(leaf->variable);
  }
  handovers.add_inner(without(request.wanted, reached), /*closed=*/false);
  torch::autograd::backward({loss}, /*grad_tensors=*/{}, /*retain_graph=*/true, /*create_graph=*/false, request.inputs);
  mark_lost(plan, request.wanted, gradients);
  return gradients;
}

GraphGradients gradients_with_graph(
    const at::Tensor& loss, const GraphRequest& request, const std::vector<at::Tensor>& leaves) {
  GraphGradients gradients;
  // The wanted ones come first, the others are for the size of their gradients.
  auto asked = request.wanted;
  for (const auto& other : without(request.measured, request.wanted)) asked.push_back(other);
  const auto places = places_of(request, gradients);
  const detail::LeafHooksAside aside(leaves);
  const auto nodes = detail::graph_of({loss});
  gradients.kept = std::make_shared<detail::KeptGradients>();
  const detail::SeeGradientsGiven see(nodes, gradients.kept);
  ProductPlan plan(loss, request.wanted, /*graph_is_ours=*/false);
  const detail::RetainedGradients retained(nodes, detail::RetainedGradients::Keeps::Nothing);
  Handovers inner(places);
  inner.add_inner(leaves, /*closed=*/true);
  const auto found = sgdph::gradients(loss, asked, /*create_graph=*/true, /*retain_graph=*/true);
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!found[i].defined()) continue;
    const auto& place = places.at(asked[i].unsafeGetTensorImpl());
    if (place.wanted != nullptr) *place.wanted = found[i];
    if (place.size != nullptr) *place.size = root_mean_square(found[i]);
  }
  mark_lost(plan, request.wanted, gradients);
  return gradients;
}

at::Tensor root_mean_square(const at::Tensor& gradient) {
  refuse_sparse(gradient);
  if (gradient.numel() == 0) return at::zeros({}, gradient.options().dtype(at::kDouble));
  auto values = gradient.detach();
  if (values.is_complex()) values = at::view_as_real(values.resolve_conj());
  const auto length = at::linalg_vector_norm(values, 2, at::OptionalIntArrayRef(), false, at::kDouble);
  return length / std::sqrt(static_cast<double>(gradient.numel()));
}

}  // namespace sgdph
