#include "hessian.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/grad_layout_contract.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <unordered_set>

namespace sgdph {

void check_loss(const at::Tensor& loss, const std::string& who) {
  TORCH_CHECK(loss.defined(), who, ": the loss is undefined");
  TORCH_CHECK(
      loss.numel() == 1, who, ": the loss must be a scalar, got shape ", loss.sizes(),
      "; reduce it with mean() or sum()");
  TORCH_CHECK(
      loss.requires_grad(), who, ": the loss has no graph; compute it from the parameters with gradients enabled");
}

std::vector<at::Tensor> gradients(
    const at::Tensor& loss, const std::vector<at::Tensor>& parameters, bool create_graph, bool retain_graph) {
  auto found = torch::autograd::grad(
      {loss}, parameters, /*grad_outputs=*/{}, create_graph || retain_graph, create_graph, /*allow_unused=*/true);
  for (const auto& gradient : found) {
    TORCH_CHECK(
        !gradient.defined() || !gradient.is_sparse(),
        "sgdph: sparse gradients are not supported; construct the embedding with sparse(false)");
  }
  return found;
}

std::vector<at::Tensor> hessian_vector_product(
    const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& parameters,
    const std::vector<at::Tensor>& probes, bool retain_graph) {
  // A gradient that is constant, or absent, contributes nothing and cannot be differentiated.
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> weights;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined() || !gradients[i].requires_grad()) continue;
    outputs.push_back(gradients[i]);
    weights.push_back(probes[i]);
  }
  std::vector<at::Tensor> products(parameters.size());
  if (!outputs.empty()) {
    products = torch::autograd::grad(
        outputs, parameters, weights, retain_graph, /*create_graph=*/false, /*allow_unused=*/true);
  }
  for (size_t i = 0; i < products.size(); ++i) {
    products[i] = products[i].defined() ? products[i].detach() : at::zeros_like(parameters[i]).detach();
  }
  return products;
}

at::Tensor hessian_vector_product(
    const at::Tensor& gradient, const at::Tensor& parameter, const at::Tensor& probe, bool retain_graph) {
  return hessian_vector_product(
      std::vector<at::Tensor>{gradient}, std::vector<at::Tensor>{parameter}, std::vector<at::Tensor>{probe},
      retain_graph)[0];
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
