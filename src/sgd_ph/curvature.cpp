#include "sgd_ph/curvature.h"

#include <torch/types.h>

#include <cmath>

namespace sgdph {
namespace {

void absorb_into_cycle(SGDPHParamState& state, const at::Tensor& estimate, int64_t cycle) {
  const auto position = (state.refreshes() - 1) % cycle;
  state.cycle_sum(position == 0 ? estimate.clone() : state.cycle_sum() + estimate);
  const bool first_cycle = state.refreshes() <= cycle;
  if (first_cycle || position == cycle - 1) state.curvature(state.cycle_sum() / static_cast<double>(position + 1));
}

}  // namespace

void absorb_estimate(SGDPHParamState& state, const at::Tensor& estimate, const SGDPHOptions& options) {
  state.refreshes(state.refreshes() + 1);
  if (options.probe() == Probe::Hadamard) {
    absorb_into_cycle(state, estimate, options.probe_cycle());
    return;
  }
  const bool paper = options.rule() == Rule::Paper;
  auto value = options.probe() == Probe::Ones ? estimate.abs() : estimate;
  if (paper && options.probe() == Probe::Ones) value = value + options.eps();
  const double keep = paper ? 1 - options.hessian_momentum() : options.hessian_momentum();
  const double take = paper ? options.hessian_momentum() : 1 - options.hessian_momentum();
  // Not in place: the caller may keep the old state to return to.
  state.curvature(state.curvature().defined() ? state.curvature() * keep + value * take : value * take);
}

at::Tensor rectified_curvature(
    const SGDPHParamState& state, const at::Tensor& parameter, const SGDPHOptions& options, int64_t exponent) {
  auto curvature = state.curvature().defined() ? state.curvature().abs() : at::zeros_like(parameter);
  if (const double floor = options.effective_curvature_floor(); floor > 0) {
    curvature = at::maximum(curvature, curvature.mean() * floor);
  }
  const bool holds_eps = options.rule() == Rule::Paper && options.probe() == Probe::Ones;
  if (!holds_eps) curvature = curvature + options.eps();
  if (options.rule() == Rule::Reference && options.probe() != Probe::Hadamard) {
    curvature = curvature / (1 - std::pow(options.hessian_momentum(), static_cast<double>(exponent)));
  }
  return curvature;
}

}  // namespace sgdph
