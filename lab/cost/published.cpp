#include "cost/published.h"

#include <sgdph/hessian.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

namespace sgdph::lab::cost {

PublishedProduct published_product(const at::Tensor& loss, const std::vector<at::Tensor>& parameters, size_t block) {
  PublishedProduct result;
  result.gradients = gradients(loss, parameters, /*create_graph=*/true);
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> vectors;
  const std::vector<at::Tensor> inputs(parameters.begin() + static_cast<std::ptrdiff_t>(block), parameters.end());
  for (size_t i = block; i < parameters.size(); ++i) {
    const auto& gradient = result.gradients[i];
    if (!gradient.defined() || !gradient.requires_grad()) continue;
    outputs.push_back(gradient);
    vectors.push_back(i == block ? at::ones_like(gradient) : at::zeros_like(gradient));
  }
  const auto products = torch::autograd::grad(
      outputs, inputs, vectors, /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
  result.row_sum = products.front().defined() ? products.front().detach() : at::zeros_like(parameters[block]);
  for (auto& gradient : result.gradients) {
    if (gradient.defined()) gradient = gradient.detach();
  }
  return result;
}

}  // namespace sgdph::lab::cost
