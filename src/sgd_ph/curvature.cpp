#include "sgd_ph/curvature.h"

#include "sgd_ph/probes.h"

#include <torch/types.h>

#include <cmath>

namespace sgdph::sgd_ph {

void absorb_estimate(SGDPHParamState& state, const at::Tensor& estimate, const SGDPHOptions& options, double pace) {
  state.refreshes(state.refreshes() + 1);
  state.age(state.age() + 1 / pace);
  probe_kind(options.probe()).absorb(state, estimate, options, pace);
}

at::Tensor rectified_curvature(
    const SGDPHParamState& state, const at::Tensor& parameter, const SGDPHOptions& options, double exponent) {
  auto curvature = state.curvature().defined()
                       ? state.curvature().abs()
                       : at::zeros_like(parameter, at::promote_types(parameter.scalar_type(), at::kFloat));
  if (const double floor = options.effective_curvature_floor(); floor > 0) {
    curvature = at::maximum(curvature, curvature.mean() * floor);
  }
  const auto& kind = probe_kind(options.probe());
  const bool holds_eps = options.rule() == Rule::Paper && !kind.averages_signed;
  if (!holds_eps) curvature = curvature + options.eps();
  const bool paper = options.rule() == Rule::Paper;
  if (kind.starts_at_zero && (!paper || options.effective_refresh() == Refresh::Spread)) {
    const double keep = paper ? 1 - options.hessian_momentum() : options.hessian_momentum();
    curvature = curvature / (1 - std::pow(keep, exponent));
  }
  return curvature;
}

}  // namespace sgdph::sgd_ph
