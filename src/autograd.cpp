#include "autograd.h"

#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/grad_layout_contract.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <unordered_set>
#include <vector>

namespace sgdph {

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

void accumulate_gradient(const at::Tensor& parameter, const at::Tensor& gradient) {
  if (!gradient.defined()) return;
  torch::NoGradGuard no_grad;
  auto& held = parameter.mutable_grad();
  if (held.defined()) {
    held.add_(gradient.detach());
    return;
  }
  // The engine may hand out one tensor for two parameters, or an expanded one.
  const bool own = gradient.use_count() <= 1 && gradient.storage().use_count() <= 1 &&
                   torch::autograd::utils::obeys_layout_contract(gradient, parameter);
  held = own ? gradient.detach() : torch::autograd::utils::clone_obey_contract(gradient.detach(), parameter);
}

}  // namespace sgdph
