#include <sgdph/lion.h>

#include <torch/types.h>

namespace sgdph {
namespace {

void update_parameter(at::Tensor& parameter, LionParamState& state, const LionOptions& options) {
  const auto [beta1, beta2] = options.betas();
  const auto& gradient = parameter.grad();
  if (!state.exp_avg().defined()) state.exp_avg(at::zeros_like(parameter));
  const auto direction = (state.exp_avg() * beta1).add_(gradient, 1 - beta1).sign_();
  if (options.weight_decay() != 0) parameter.mul_(1 - options.lr() * options.weight_decay());
  parameter.add_(direction, -options.lr());
  state.exp_avg().mul_(beta2).add_(gradient, 1 - beta2);
}

}  // namespace

void LionOptions::visit(detail::FieldVisitor& visitor) {
  visitor("lr", lr_, {"length of every element's step", at_least(0)});
  visitor("betas", betas_, {"weight of the old momentum in the direction, and in the new momentum", fraction()});
  visitor("weight_decay", weight_decay_, {"decoupled, multiplied by lr", at_least(0)});
}

void LionParamState::visit(detail::FieldVisitor& visitor) {
  visitor("exp_avg", exp_avg_);
}

void Lion::update() {
  for_each_gradient<LionOptions>([this](const LionOptions& options, at::Tensor& parameter) {
    update_parameter(parameter, state_of<LionParamState>(parameter), options);
  });
}

}  // namespace sgdph
