#include "update_rule.h"

#include <torch/types.h>

namespace sgdph {
namespace {

/// Takes the gradient into the momentum and returns it.
at::Tensor& update_momentum(const at::Tensor& parameter, SGDPHParamState& state, const SGDPHOptions& options) {
  if (!state.momentum_buffer().defined()) state.momentum_buffer(at::zeros_like(parameter));
  auto& momentum = state.momentum_buffer();
  if (options.rule() == Rule::Paper) {
    momentum.mul_(1 - options.momentum()).add_(parameter.grad(), options.momentum());
  } else {
    momentum.mul_(options.momentum()).add_(parameter.grad());
  }
  return momentum;
}

}  // namespace

void first_order_step(at::Tensor& parameter, SGDPHParamState& state, const SGDPHOptions& options) {
  auto& momentum = update_momentum(parameter, state, options);
  if (options.rule() == Rule::Paper) {
    // Decay first, on the old parameter; it stays outside of the average.
    if (options.weight_decay() != 0) parameter.mul_(1 - options.lr() * options.weight_decay());
  } else if (options.weight_decay() != 0) {
    momentum.add_(parameter, options.weight_decay());
  }
  parameter.add_(momentum, -options.lr());
}

void second_order_step(
    at::Tensor& parameter, SGDPHParamState& state, const SGDPHOptions& options, const at::Tensor& curvature) {
  const auto direction = update_momentum(parameter, state, options) / curvature;
  if (options.weight_decay() != 0) parameter.mul_(1 - options.lr() * options.weight_decay());
  parameter.add_(direction, -options.lr() * options.lr_so());
}

}  // namespace sgdph
