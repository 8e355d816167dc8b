#include "sgd_ph/update_rule.h"

#include "kernels/momentum_step.h"

#include <torch/types.h>

namespace sgdph::sgd_ph {
namespace {

at::Tensor& momentum_of(const at::Tensor& parameter, SGDPHParamState& state) {
  if (!state.momentum_buffer().defined()) state.momentum_buffer(at::zeros_like(parameter));
  return state.momentum_buffer();
}

/// Takes the gradient into the momentum and returns it.
at::Tensor& update_momentum(const at::Tensor& parameter, SGDPHParamState& state, const SGDPHOptions& options) {
  auto& momentum = momentum_of(parameter, state);
  if (options.rule() == Rule::Paper) {
    momentum.mul_(1 - options.momentum()).add_(parameter.grad(), options.momentum());
  } else {
    momentum.mul_(options.momentum()).add_(parameter.grad());
  }
  return momentum;
}

}  // namespace

void first_order_step(at::Tensor& parameter, SGDPHParamState& state, const SGDPHOptions& options) {
  if (kernels::momentum_step_takes(parameter, parameter.grad(), momentum_of(parameter, state))) {
    const bool paper = options.rule() == Rule::Paper;
    kernels::MomentumStep step;
    step.keep = paper ? 1 - options.momentum() : options.momentum();
    step.take = paper ? options.momentum() : 1;
    // Paper: on the old parameter, outside of the average.
    step.decay = paper ? 0 : options.weight_decay();
    step.shrink = paper ? 1 - options.lr() * options.weight_decay() : 1;
    step.rate = options.lr();
    kernels::momentum_step(parameter, parameter.grad(), momentum_of(parameter, state), step);
    return;
  }
  auto& momentum = update_momentum(parameter, state, options);
  if (options.rule() == Rule::Paper) {
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

}  // namespace sgdph::sgd_ph
