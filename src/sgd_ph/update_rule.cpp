#include "sgd_ph/update_rule.h"

#include "kernels/momentum_step.h"

#include <torch/types.h>

namespace sgdph::sgd_ph {
namespace {

/// Of the old momentum and of the gradient in the new one.
struct MomentumWeights {
  explicit MomentumWeights(const SGDPHOptions& options)
      : keep(options.rule() == Rule::Paper ? 1 - options.momentum() : options.momentum()),
        take(options.rule() == Rule::Paper ? options.momentum() : 1) {}
  double keep;
  double take;
};

/// The momentum's buffer; none, and undefined, if the old momentum has no weight: then the gradient is all of the new
/// one.
at::Tensor& momentum_of(const at::Tensor& parameter, SGDPHParamState& state, const MomentumWeights& weights) {
  if (weights.keep == 0) {
    state.momentum_buffer({});
  } else if (!state.momentum_buffer().defined()) {
    state.momentum_buffer(at::zeros_like(parameter));
  }
  return state.momentum_buffer();
}

/// Takes the gradient into the momentum and returns it.
at::Tensor update_momentum(const at::Tensor& parameter, SGDPHParamState& state, const SGDPHOptions& options) {
  const MomentumWeights weights(options);
  auto& momentum = momentum_of(parameter, state, weights);
  if (!momentum.defined()) return parameter.grad();
  return momentum.mul_(weights.keep).add_(parameter.grad(), weights.take);
}

}  // namespace

void first_order_step(at::Tensor& parameter, SGDPHParamState& state, const SGDPHOptions& options) {
  const bool paper = options.rule() == Rule::Paper;
  const MomentumWeights weights(options);
  if (const auto& buffer = momentum_of(parameter, state, weights);
      kernels::momentum_step_takes(parameter, parameter.grad(), buffer)) {
    kernels::MomentumStep step;
    step.keep = weights.keep;
    step.take = weights.take;
    // Paper: on the old parameter, outside of the average.
    step.decay = paper ? 0 : options.weight_decay();
    step.shrink = paper ? 1 - options.lr() * options.weight_decay() : 1;
    step.rate = options.lr();
    kernels::momentum_step(parameter, parameter.grad(), buffer, step);
    return;
  }
  auto direction = update_momentum(parameter, state, options);
  if (options.weight_decay() != 0) {
    if (paper) {
      parameter.mul_(1 - options.lr() * options.weight_decay());
    } else if (state.momentum_buffer().defined()) {
      direction.add_(parameter, options.weight_decay());  // in the momentum itself
    } else {
      direction = direction.add(parameter, options.weight_decay());
    }
  }
  parameter.add_(direction, -options.lr());
}

void second_order_step(
    at::Tensor& parameter, SGDPHParamState& state, const SGDPHOptions& options, const at::Tensor& curvature) {
  const auto direction = update_momentum(parameter, state, options) / curvature;
  if (options.weight_decay() != 0) parameter.mul_(1 - options.lr() * options.weight_decay());
  parameter.add_(direction, -options.lr() * options.lr_so());
}

bool is_reduced(const at::Tensor& parameter) {
  return parameter.scalar_type() == at::kBFloat16 || parameter.scalar_type() == at::kHalf;
}

void step_master(at::Tensor& parameter, SGDPHParamState& state, const std::function<void(at::Tensor& master)>& step) {
  auto& master = state.master();
  const auto own = parameter.detach().to(at::kFloat);
  master = master.defined() ? at::where(master.to(parameter.scalar_type()) == parameter, master, own) : own;
  if (state.momentum_buffer().defined()) state.momentum_buffer(state.momentum_buffer().to(at::kFloat));
  master.mutable_grad() = parameter.grad().to(at::kFloat);
  step(master);
  master.mutable_grad() = at::Tensor();
  parameter.copy_(master);
}

}  // namespace sgdph::sgd_ph
