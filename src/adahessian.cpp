#include <sgdph/adahessian.h>

#include "curvature_impl.h"
#include "signs.h"

#include <torch/types.h>

#include <cmath>
#include <unordered_map>

namespace sgdph {
namespace {

/// The mean over a convolution's kernel, in the place of every element of it.
at::Tensor average_over_kernel(const at::Tensor& curvature) {
  if (curvature.dim() < 3) return curvature;
  std::vector<int64_t> kernel;
  for (int64_t i = 2; i < curvature.dim(); ++i) kernel.push_back(i);
  return curvature.mean(kernel, /*keepdim=*/true).expand_as(curvature);
}

/// Takes the curvature into its average; an undefined one leaves the average, bias correction included, where it is.
void update_curvature_average(const at::Tensor& curvature, AdaHessianParamState& state, double beta) {
  auto& square = state.exp_hessian_diag_sq();
  const auto steps_before = static_cast<double>(state.step());
  if (curvature.defined()) {
    square.mul_(beta).addcmul_(curvature, curvature, 1 - beta);
  } else {
    square.mul_(beta + (1 - beta) / (1 - std::pow(beta, steps_before)));
  }
}

/// An undefined curvature: what was known before serves on.
void update_parameter(
    at::Tensor& parameter, const at::Tensor& curvature, AdaHessianParamState& state, const AdaHessianOptions& options) {
  const auto [beta1, beta2] = options.betas();
  if (!state.exp_avg().defined()) {
    // In float32 at least, as the curvature is: its squares are beyond half precision.
    const auto type = at::promote_types(parameter.scalar_type(), at::kFloat);
    state.exp_avg(at::zeros_like(parameter, type));
    state.exp_hessian_diag_sq(at::zeros_like(parameter, type));
  }
  auto& average = state.exp_avg().mul_(beta1).add_(parameter.grad(), 1 - beta1);
  update_curvature_average(curvature, state, beta2);
  state.step(state.step() + 1);
  const auto t = static_cast<double>(state.step());
  auto denominator = state.exp_hessian_diag_sq().sqrt().div_(std::sqrt(1 - std::pow(beta2, t)));
  if (options.hessian_power() != 1) denominator.pow_(options.hessian_power());
  denominator.add_(options.eps());
  if (options.weight_decay() != 0) parameter.mul_(1 - options.lr() * options.weight_decay());
  const double rate = options.lr() / (1 - std::pow(beta1, t));
  if (average.scalar_type() == parameter.scalar_type()) {
    parameter.addcdiv_(average, denominator, -rate);
  } else {
    parameter.add_(average / denominator, -rate);
  }
}

}  // namespace

void AdaHessianOptions::visit(detail::FieldVisitor& visitor) {
  visitor("lr", lr_, {"learning rate", at_least(0)});
  visitor("betas", betas_, {"decay of the averages of gradient and squared curvature", fraction()});
  visitor("eps", eps_, {"added to the divisor", at_least(0)});
  visitor("weight_decay", weight_decay_, {"decoupled, multiplied by lr", at_least(0)});
  visitor("hessian_power", hessian_power_, {"exponent of the divisor; 1: a Newton-like step", between(0, 1)});
  visitor("seed", seed_, detail::shared("of the random probes"));
}

void AdaHessianParamState::visit(detail::FieldVisitor& visitor) {
  visitor("step", step_);
  visitor("exp_avg", exp_avg_);
  visitor("exp_hessian_diag_sq", exp_hessian_diag_sq_);
}

std::vector<DueParameter> AdaHessian::due() const {
  std::vector<DueParameter> due;
  size_t position = 0;
  for (const auto& group : param_groups_) {
    for (const auto& parameter : group.params()) {
      if (parameter.requires_grad()) due.push_back({position, parameter});
      ++position;
    }
  }
  return due;
}

Probes AdaHessian::probes_of(const DueParameter& due) const {
  if (has_probe_source()) return {probe_from_source(due.parameter), {}};
  const auto* state = find_state_of<AdaHessianParamState>(due.parameter);
  const auto seed = static_cast<const AdaHessianOptions&>(*defaults_).seed();
  const auto steps = static_cast<uint64_t>(state == nullptr ? 0 : state->step());
  return {rademacher_like(due.parameter, {seed, 0, due.position, steps}), {}};
}

void AdaHessian::update() {
  const auto measurements = close_window();
  notice_not_measurable(measurements);
  TORCH_CHECK(
      measurements.measured || measurements.spoiled || trainable_parameters().empty(),
      "AdaHessian: no curvature for this step; call optimizer.backward(loss) in place of loss.backward(), or "
      "optimizer.update_curvature(loss) before the step");
  std::unordered_map<const at::TensorImpl*, const Measurement*> measured;
  for (const auto& one : measurements.found) measured.emplace(one.of.parameter.unsafeGetTensorImpl(), &one);

  struct Update {
    at::Tensor parameter, curvature;
    const AdaHessianOptions* options;
  };
  std::vector<Update> updates;
  size_t position = 0, stuck = 0;
  for (auto& group : param_groups_) {
    for (auto& parameter : group.params()) {
      const auto here = position++;
      if (!moves(parameter)) continue;
      const auto* state = find_state_of<AdaHessianParamState>(parameter);
      const bool has_curvature = state != nullptr && state->step() != 0;
      const auto found = measured.find(parameter.unsafeGetTensorImpl());
      if (measurements.spoiled) {
        if (has_curvature) updates.push_back({parameter, {}, &static_cast<const AdaHessianOptions&>(group.options())});
        continue;
      }
      if (found == measured.end()) {
        // LibTorch's zero_grad may have left a gradient of zeros; no loss of this step depends on the parameter.
        TORCH_CHECK(
            !parameter.grad().ne(0).any().item<bool>(), "AdaHessian: parameter ", here, " of shape ", parameter.sizes(),
            " has a gradient but no curvature; pass each of its losses to optimizer.backward, or one ",
            "that stands for them to optimizer.update_curvature");
        continue;
      }
      const auto& one = *found->second;
      // A gradient without a graph has no curvature, which is not to say that it is zero.
      const bool usable = one.finite && one.has_graph;
      // Nothing to divide by, neither now nor from before.
      if (!usable && !has_curvature) {
        stuck += rejected_in_a_row(parameter) == kRejectionsToNotice ? 1 : 0;
        continue;
      }
      updates.push_back(
          {parameter, usable ? average_over_kernel(one.estimate.abs()) : at::Tensor(),
           &static_cast<const AdaHessianOptions&>(group.options())});
    }
  }
  if (stuck != 0) {
    TORCH_WARN(
        "AdaHessian: ", stuck, " of the parameters do not move: their curvature has never been finite, and there is ",
        "nothing to divide by; mask what the loss takes a norm or root of, where it is zero");
  }
  for (auto& [parameter, curvature, options] : updates) {
    update_parameter(parameter, curvature, state_of<AdaHessianParamState>(parameter), *options);
  }
}

}  // namespace sgdph
