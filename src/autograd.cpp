#include "autograd.h"

#include "detail/leaf_hooks.h"
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

/// Whether somebody else holds the gradient's memory; the tensor it is a view of is part of itself.
bool is_shared(const at::Tensor& gradient) {
  const bool view = gradient.is_view();
  return gradient.use_count() > 1 || (view && gradient._base().use_count() > 1) ||
         gradient.storage().use_count() > (view ? 2 : 1);
}

/// Stands before a leaf: keeps the gradient with its graph if that is wanted, and hands it on without.
class Handover final : public detail::PreHook {
 public:
  Handover(AccumulateGrad* node, at::Tensor* wanted, at::Tensor* size)
      : wanted_(wanted),
        size_(size),
        // Who may change in place what shares memory with the gradient kept.
        changed_before_(!detail::leaf_hooks(node->variable).empty()),
        changed_after_(!node->post_hooks().empty()) {}

  variable_list operator()(const variable_list& gradients) override {
    const auto& gradient = gradients[0];
    if (!gradient.defined()) return gradients;
    if (size_ != nullptr) *size_ = root_mean_square(gradient);
    if (!gradient.requires_grad()) {
      if (wanted_ != nullptr) *wanted_ = gradient;
      return gradients;
    }
    const bool shared = is_shared(gradient);
    auto plain = gradient.detach();
    if (wanted_ != nullptr) {
      *wanted_ = gradient;
      if (changed_before_) plain = plain.clone();
    }
    // With a second owner the engine makes a copy instead of giving the tensor itself to the leaf.
    if (shared || (wanted_ != nullptr && changed_after_)) second_owner_ = plain;
    return {std::move(plain)};
  }

 private:
  at::Tensor* wanted_;
  at::Tensor* size_;
  bool changed_before_, changed_after_;
  at::Tensor second_owner_;
};

/// Where each of the tensors is in `places`.
std::unordered_map<const at::TensorImpl*, at::Tensor*> places_of(
    const std::vector<at::Tensor>& tensors, std::vector<at::Tensor>& places) {
  places.resize(tensors.size());
  std::unordered_map<const at::TensorImpl*, at::Tensor*> found;
  for (size_t i = 0; i < tensors.size(); ++i) found.emplace(tensors[i].unsafeGetTensorImpl(), &places[i]);
  return found;
}

at::Tensor* place(const std::unordered_map<const at::TensorImpl*, at::Tensor*>& places, const at::Tensor& tensor) {
  const auto found = places.find(tensor.unsafeGetTensorImpl());
  return found == places.end() ? nullptr : found->second;
}

/// A Handover before each of these leaves, for a while.
class Handovers {
 public:
  Handovers(const std::vector<AccumulateGrad*>& leaves, const GraphRequest& request, GraphGradients& gradients) {
    const auto wanted = places_of(request.wanted, gradients.wanted);
    const auto sizes = places_of(request.measured, gradients.sizes);
    for (auto* leaf : leaves) {
      auto hook = std::make_unique<Handover>(leaf, place(wanted, leaf->variable), place(sizes, leaf->variable));
      hooks_.emplace_back(leaf, hook.get());
      detail::add_first_hook(*leaf, std::move(hook));
    }
  }
  ~Handovers() {
    for (const auto& [leaf, ours] : hooks_) {
      detail::remove_first_hooks(*leaf, [ours = ours](const detail::PreHook* hook) { return hook == ours; });
    }
  }
  Handovers(const Handovers&) = delete;
  Handovers& operator=(const Handovers&) = delete;

 private:
  std::vector<std::pair<AccumulateGrad*, const detail::PreHook*>> hooks_;
};

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

void release_graph(const at::Tensor& loss) {
  std::vector<torch::autograd::Node*> open{loss.grad_fn().get()};
  std::unordered_set<torch::autograd::Node*> seen;
  while (!open.empty()) {
    auto* node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
    node->release_variables();
  }
}

GraphGradients backward_with_graph(const at::Tensor& loss, const GraphRequest& request) {
  GraphGradients gradients;
  // The engine itself records nothing, so that leaves, and reducers behind them, see an ordinary pass; the plan turns
  // recording on for the nodes that need it.
  ProductPlan plan(loss, request.wanted, request.graph_is_ours);
  const Handovers handovers(plan.leaves(), request, gradients);
  torch::autograd::backward({loss}, /*grad_tensors=*/{}, /*retain_graph=*/true, /*create_graph=*/false, request.inputs);
  return gradients;
}

at::Tensor root_mean_square(const at::Tensor& gradient) {
  TORCH_CHECK(
      gradient.layout() == at::kStrided, "sgdph: sparse gradients are not supported; construct the embedding with ",
      "sparse(false)");
  if (gradient.numel() == 0) return at::zeros({}, gradient.options().dtype(at::kDouble));
  const auto length = at::linalg_vector_norm(gradient.detach(), 2, at::OptionalIntArrayRef(), false, at::kDouble);
  return length / std::sqrt(static_cast<double>(gradient.numel()));
}

}  // namespace sgdph
