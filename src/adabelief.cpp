#include <sgdph/adabelief.h>

#include "detail/option_check.h"

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
  visitor("lr", lr_);
  visitor("betas", betas_);
  visitor("eps", eps_);
  visitor("weight_decay", weight_decay_);
  visitor("amsgrad", amsgrad_);
  visitor("weight_decouple", weight_decouple_);
  visitor("fixed_decay", fixed_decay_);
  visitor("rectify", rectify_);
  visitor("degenerated_to_sgd", degenerated_to_sgd_);
}

void AdaBeliefOptions::check(const std::string& where) const {
  const detail::OptionCheck option{where};
  option.at_least("lr", lr(), 0);
  option.at_least("eps", eps(), 0);
  option.at_least("weight_decay", weight_decay(), 0);
  option.betas(betas());
}

void AdaBeliefParamState::visit(detail::FieldVisitor& visitor) {
  visitor("step", step_);
  visitor("exp_avg", exp_avg_);
  visitor("exp_avg_var", exp_avg_var_);
  visitor("max_exp_avg_var", max_exp_avg_var_);
}

AdaBelief::AdaBelief(std::vector<torch::optim::OptimizerParamGroup> groups, AdaBeliefOptions defaults)
    : OptimizerBase("AdaBelief", std::move(groups), std::make_unique<AdaBeliefOptions>(defaults)) {
  check();
}

AdaBelief::AdaBelief(std::vector<at::Tensor> parameters, AdaBeliefOptions defaults)
    : AdaBelief(
          std::vector<torch::optim::OptimizerParamGroup>{torch::optim::OptimizerParamGroup(std::move(parameters))},
          std::move(defaults)) {}

void AdaBelief::update() {
  for_each_gradient<AdaBeliefOptions>([this](const AdaBeliefOptions& options, at::Tensor& parameter) {
    update_parameter(parameter, state_of<AdaBeliefParamState>(parameter), options);
  });
}

std::unique_ptr<torch::optim::OptimizerParamState> AdaBelief::make_state() const {
  return std::make_unique<AdaBeliefParamState>();
}

}  // namespace sgdph
