#include <sgdph/adabelief.h>

#include <torch/types.h>

#include <cmath>

namespace sgdph {
namespace {

/// RAdam's rectification: the step size factor, or nothing while the variance of the second moment is intractable.
std::optional<double> rectification(double beta1, double beta2, int64_t step) {
  const auto t = static_cast<double>(step);
  const double power = std::pow(beta2, t);
  const double longest = 2 / (1 - beta2) - 1;
  const double length = longest - 2 * t * power / (1 - power);
  if (length < 5) return std::nullopt;
  return std::sqrt((1 - power) * (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) /
         (1 - std::pow(beta1, t));
}

void update_parameter(at::Tensor& parameter, AdaBeliefParamState& state, const AdaBeliefOptions& options) {
  const auto [beta1, beta2] = options.betas();
  auto gradient = parameter.grad();
  if (!state.exp_avg().defined()) {
    state.exp_avg(at::zeros_like(parameter));
    state.exp_avg_var(at::zeros_like(parameter));
  }
  if (options.amsgrad() && !state.max_exp_avg_var().defined()) state.max_exp_avg_var(at::zeros_like(parameter));
  state.step(state.step() + 1);
  const auto t = static_cast<double>(state.step());
  const double correction1 = 1 - std::pow(beta1, t);
  const double correction2 = 1 - std::pow(beta2, t);

  if (options.weight_decouple()) {
    parameter.mul_(1 - (options.fixed_decay() ? 1 : options.lr()) * options.weight_decay());
  } else if (options.weight_decay() != 0) {
    gradient = gradient.add(parameter, options.weight_decay());
  }

  auto& average = state.exp_avg().mul_(beta1).add_(gradient, 1 - beta1);
  const auto deviation = gradient - average;
  // The eps stays in the state, as in the authors' code.
  auto& variance = state.exp_avg_var().mul_(beta2).addcmul_(deviation, deviation, 1 - beta2).add_(options.eps());
  if (options.amsgrad()) state.max_exp_avg_var(at::maximum(state.max_exp_avg_var(), variance));

  if (!options.rectify()) {
    const auto& bound = options.amsgrad() ? state.max_exp_avg_var() : variance;
    const auto denominator = bound.sqrt().div_(std::sqrt(correction2)).add_(options.eps());
    parameter.addcdiv_(average, denominator, -options.lr() / correction1);
  } else if (const auto factor = rectification(beta1, beta2, state.step())) {
    parameter.addcdiv_(average, variance.sqrt().add_(options.eps()), -options.lr() * *factor);
  } else if (options.degenerated_to_sgd()) {
    parameter.add_(average, -options.lr() / correction1);
  }
}

}  // namespace

void AdaBeliefOptions::visit(detail::FieldVisitor& visitor) {
  visitor("lr", lr_, {"learning rate", at_least(0)});
  visitor("betas", betas_, {"decay of the averages of gradient and deviation", fraction()});
  visitor("eps", eps_, {"added to the second moment, where it accumulates, and to its root", at_least(0)});
  visitor("weight_decay", weight_decay_, {"weight decay", at_least(0)});
  visitor("amsgrad", amsgrad_, {"divide by the largest second moment so far; not with rectify"});
  visitor("weight_decouple", weight_decouple_, {"shrink the parameter instead of adding to the gradient"});
  visitor("fixed_decay", fixed_decay_, {"decoupled decay is not multiplied by lr"});
  visitor("rectify", rectify_, {"variance rectification, as in RAdam"});
  visitor("degenerated_to_sgd", degenerated_to_sgd_, {"a momentum step while rectification is not yet possible"});
}

void AdaBeliefParamState::visit(detail::FieldVisitor& visitor) {
  visitor("step", step_);
  visitor("exp_avg", exp_avg_);
  visitor("exp_avg_var", exp_avg_var_);
  visitor("max_exp_avg_var", max_exp_avg_var_);
}

void AdaBelief::update() {
  for_each_gradient<AdaBeliefOptions>([this](const AdaBeliefOptions& options, at::Tensor& parameter) {
    update_parameter(parameter, state_of<AdaBeliefParamState>(parameter), options);
  });
}

}  // namespace sgdph
