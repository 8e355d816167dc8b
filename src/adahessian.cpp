#include <sgdph/adahessian.h>

#include <sgdph/hessian.h>

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

void update_parameter(
    at::Tensor& parameter, const at::Tensor& curvature, AdaHessianParamState& state, const AdaHessianOptions& options) {
  const auto [beta1, beta2] = options.betas();
  if (!state.exp_avg().defined()) {
    state.exp_avg(at::zeros_like(parameter));
    state.exp_hessian_diag_sq(at::zeros_like(parameter));
  }
  state.step(state.step() + 1);
  const auto t = static_cast<double>(state.step());
  auto& average = state.exp_avg().mul_(beta1).add_(parameter.grad(), 1 - beta1);
  auto& square = state.exp_hessian_diag_sq().mul_(beta2).addcmul_(curvature, curvature, 1 - beta2);
  auto denominator = square.sqrt().div_(std::sqrt(1 - std::pow(beta2, t)));
  if (options.hessian_power() != 1) denominator.pow_(options.hessian_power());
  denominator.add_(options.eps());
  if (options.weight_decay() != 0) parameter.mul_(1 - options.lr() * options.weight_decay());
  parameter.addcdiv_(average, denominator, -options.lr() / (1 - std::pow(beta1, t)));
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

void AdaHessian::groups_changed() {
  forget_curvature();
}

void AdaHessian::forget_curvature() {
  curvature_.clear();
  measured_ = false;
}

CurvatureOptimizer::Request AdaHessian::curvature_request() {
  Request request;
  if (!measured_) request.parameters = trainable_parameters();
  return request;
}

at::Tensor AdaHessian::probe_of(const at::Tensor& parameter, uint64_t position) const {
  if (has_probe_source()) return probe_from_source(parameter);
  const auto* state = find_state_of<AdaHessianParamState>(parameter);
  const auto seed = static_cast<const AdaHessianOptions&>(*defaults_).seed();
  return rademacher_like(parameter, {seed, 0, position, static_cast<uint64_t>(state == nullptr ? 0 : state->step())});
}

void AdaHessian::measure(
    const Request& request, const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>&,
    bool retain_graph) {
  std::unordered_map<const at::TensorImpl*, uint64_t> position;
  for (const auto& group : param_groups_) {
    for (const auto& parameter : group.params()) position.emplace(parameter.unsafeGetTensorImpl(), position.size());
  }
  std::vector<at::Tensor> probes;
  for (const auto& parameter : request.parameters) {
    probes.push_back(probe_of(parameter, position.at(parameter.unsafeGetTensorImpl())));
  }
  auto products = hessian_vector_product(gradients, request.parameters, probes, retain_graph);
  std::unordered_map<const at::TensorImpl*, at::Tensor> curvature;
  for (size_t i = 0; i < products.size(); ++i) {
    // A parameter the loss does not depend on has no curvature, rather than zero curvature to divide by.
    if (!gradients[i].defined()) continue;
    products[i].mul_(probes[i]);
    all_reduce(products[i]);
    curvature.emplace(request.parameters[i].unsafeGetTensorImpl(), average_over_kernel(products[i].abs_()));
  }
  curvature_ = std::move(curvature);
  measured_ = true;
}

void AdaHessian::update() {
  TORCH_CHECK(
      measured_ || trainable_parameters().empty(),
      "AdaHessian: no curvature for this step; call optimizer.backward(loss) in place of loss.backward(), or "
      "optimizer.update_curvature(loss) before the step");
  for_each_gradient<AdaHessianOptions>([this](const AdaHessianOptions& options, at::Tensor& parameter) {
    const auto found = curvature_.find(parameter.unsafeGetTensorImpl());
    if (found == curvature_.end()) return;
    update_parameter(parameter, found->second, state_of<AdaHessianParamState>(parameter), options);
  });
  forget_curvature();
}

}  // namespace sgdph
