#include "sgd_ph/pending.h"

#include <sgdph/detail/finite.h>
#include <sgdph/hessian.h>

#include "sgd_ph/shift_guard.h"

#include <torch/types.h>

#include <utility>

namespace sgdph::sgd_ph {

std::vector<Measured> measure_each(const std::vector<Asked>& asked, bool retain_graph, const Average& average) {
  std::vector<Measured> blocks;
  for (const auto& block : asked) {
    if (!block.gradient.defined()) continue;
    const bool guard = block.guard_signs.defined();
    const bool more = retain_graph || &block != &asked.back();
    Measured measured;
    measured.slot = block.slot;
    measured.has_graph = block.gradient.requires_grad();
    if (guard) measured.type = coarsest_type(block.gradient);
    measured.estimate =
        block.probe * hessian_vector_product(block.gradient, block.parameter, block.probe, more || guard);
    average(measured.estimate);
    if (guard) {
      measured.random_product =
          hessian_vector_product(block.gradient, block.parameter, block.guard_signs, /*retain_graph=*/more);
      measured.gradient = block.gradient.detach().clone();
      average(measured.random_product);
      average(measured.gradient);
    }
    blocks.push_back(std::move(measured));
  }
  return blocks;
}

std::vector<Measured> measure_jointly(const std::vector<Asked>& asked, bool retain_graph, const Average& average) {
  std::vector<at::Tensor> gradients, parameters, probes;
  for (const auto& block : asked) {
    gradients.push_back(block.gradient);
    parameters.push_back(block.parameter);
    probes.push_back(block.probe);
  }
  const auto products = hessian_vector_product(gradients, parameters, probes, retain_graph);
  std::vector<Measured> blocks;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!gradients[i].defined()) continue;
    blocks.push_back({asked[i].slot, probes[i] * products[i], gradients[i].requires_grad(), {}, {}});
    average(blocks.back().estimate);
  }
  return blocks;
}

Pending::Pending(std::vector<Measured> blocks, bool joint, double gradient_scale)
    : measured_(true), blocks_(std::move(blocks)), gradient_scale_(gradient_scale) {
  std::vector<at::Tensor> values;
  for (const auto& block : blocks_) {
    values.push_back(block.estimate);
    values.push_back(block.random_product);
    products_ += block.random_product.defined() ? 2 : 1;
  }
  if (joint && !blocks_.empty()) products_ = 1;
  non_finite_ = detail::count_non_finite(values);
}

}  // namespace sgdph::sgd_ph
