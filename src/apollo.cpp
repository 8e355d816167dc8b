#include <sgdph/apollo.h>

#include <torch/types.h>

#include <cmath>

namespace sgdph {
namespace {

/// The lower bound of |B| with rebound "constant".
constexpr double kBound = 0.01;

constexpr const char* kRebounds[] = {"constant", "belief"};
constexpr const char* kDecayTypes[] = {"L2", "decoupled", "stable"};

struct ApolloProgress final : public detail::Fields {
  std::vector<double> base_lrs;
  void visit(detail::FieldVisitor& visitor) override { visitor("base_lrs", base_lrs); }
};

double learning_rate(int64_t step, double base_lr, const ApolloOptions& options) {
  if (step - 1 >= options.warmup()) return options.lr();
  const double first = options.init_lr().value_or(base_lr / 1000);
  return first + (base_lr - first) * static_cast<double>(step - 1) / static_cast<double>(options.warmup());
}

void update_parameter(at::Tensor& parameter, ApolloParamState& state, double base_lr, const ApolloOptions& options) {
  auto gradient = parameter.grad();
  if (!state.exp_avg_grad().defined()) {
    state.exp_avg_grad(at::zeros_like(parameter));
    state.approx_hessian(at::zeros_like(parameter));
    state.update(at::zeros_like(parameter));
  }
  state.step(state.step() + 1);
  const double lr = learning_rate(state.step(), base_lr, options);
  const auto decay = options.effective_weight_decay_type();
  if (decay == "L2" && options.weight_decay() != 0) gradient = gradient.add(parameter, options.weight_decay());

  const double weight = (1 - options.beta()) / (1 - std::pow(options.beta(), static_cast<double>(state.step())));
  auto& average = state.exp_avg_grad();
  const auto change = gradient - average;
  average.add_(change, weight);

  // B <- B + s u^2 solves the weak secant equation along the previous direction d = n u.
  const bool belief = options.rebound() == "belief";
  const double eps = belief ? options.eps() : options.eps() / kBound;
  const auto length = state.update().norm(4).add_(eps);
  const auto unit = state.update() / length;
  const auto unit_square = unit.square();
  auto& hessian = state.approx_hessian();
  const auto correction = -weight * (change * unit).sum() / length - (hessian * unit_square).sum();
  hessian.addcmul_(unit_square, correction);

  const auto bounded =
      belief ? at::maximum(hessian.abs(), change.abs().max()).add_(eps / weight) : hessian.abs().clamp_min_(kBound);
  auto direction = average / bounded;
  // The decay stays in the stored direction, and so enters the next secant equation, as in the authors' code.
  if (decay == "decoupled") {
    direction.add_(parameter, options.weight_decay());
  } else if (decay == "stable") {
    direction.add_(parameter * (options.weight_decay() / bounded.mean()));
  }
  parameter.add_(direction, -lr);
  state.update(std::move(direction));
}

}  // namespace

std::string ApolloOptions::effective_weight_decay_type() const {
  return weight_decay_type().value_or(rebound() == "constant" ? "L2" : "decoupled");
}

void ApolloOptions::fill_unset() {
  weight_decay_type_ = effective_weight_decay_type();
}

void ApolloOptions::visit(detail::FieldVisitor& visitor) {
  visitor("lr", lr_, {"learning rate", at_least(0)});
  visitor("beta", beta_, {"decay of the gradient's average", fraction()});
  visitor("eps", eps_, {"added to divisors", at_least(0)});
  visitor(
      "rebound", rebound_, detail::one_of("lower bound of the curvature: 0.01, or the change of gradient", kRebounds));
  visitor("warmup", warmup_, {"steps of linear warm-up", at_least(0)});
  visitor("init_lr", init_lr_, {"learning rate of the first step; unset: lr / 1000", at_least(0)});
  visitor("weight_decay", weight_decay_, {"weight decay", at_least(0)});
  visitor(
      "weight_decay_type", weight_decay_type_,
      detail::one_of("kind of weight decay; unset: L2 with rebound constant, decoupled with belief", kDecayTypes));
}

void ApolloParamState::visit(detail::FieldVisitor& visitor) {
  visitor("step", step_);
  visitor("exp_avg_grad", exp_avg_grad_);
  visitor("approx_hessian", approx_hessian_);
  visitor("update", update_);
}

Apollo::Apollo(std::vector<torch::optim::OptimizerParamGroup> groups, ApolloOptions defaults)
    : OptimizerOf(std::move(groups), std::move(defaults)) {
  groups_changed();
}

Apollo::Apollo(std::vector<at::Tensor> parameters, ApolloOptions defaults)
    : OptimizerOf(std::move(parameters), std::move(defaults)) {
  groups_changed();
}

void Apollo::groups_changed() {
  for (size_t i = base_lrs_.size(); i < param_groups_.size(); ++i) {
    base_lrs_.push_back(param_groups_[i].options().get_lr());
  }
}

void Apollo::update() {
  for (size_t i = 0; i < param_groups_.size(); ++i) {
    const auto& options = static_cast<const ApolloOptions&>(param_groups_[i].options());
    for (auto& parameter : param_groups_[i].params()) {
      if (!moves(parameter) || parameter.numel() == 0) continue;
      update_parameter(parameter, state_of<ApolloParamState>(parameter), base_lrs_[i], options);
    }
  }
}

std::unique_ptr<detail::Fields> Apollo::progress() const {
  auto progress = std::make_unique<ApolloProgress>();
  progress->base_lrs = base_lrs_;
  return progress;
}

void Apollo::check_progress(const detail::Fields& fields) const {
  TORCH_CHECK(
      dynamic_cast<const ApolloProgress&>(fields).base_lrs.size() == param_groups_.size(),
      "Apollo: the archive's base learning rates do not fit this optimizer's groups");
}

void Apollo::set_progress(detail::Fields& fields) {
  base_lrs_ = dynamic_cast<ApolloProgress&>(fields).base_lrs;
}

}  // namespace sgdph
