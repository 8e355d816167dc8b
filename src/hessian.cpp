#include <sgdph/hessian.h>

#include "detail/hooks.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

namespace sgdph {

std::vector<at::Tensor> gradients(
    const at::Tensor& loss, const std::vector<at::Tensor>& parameters, bool create_graph, bool retain_graph) {
  const detail::LeafHooksAside aside(parameters);
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
    const detail::LeafHooksAside aside(parameters);
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

}  // namespace sgdph
