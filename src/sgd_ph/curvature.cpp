#include "sgd_ph/curvature.h"

#include "sgd_ph/probes.h"

#include <torch/types.h>

#include <cmath>

namespace sgdph::sgd_ph {

void absorb_estimate(SGDPHParamState& state, const at::Tensor& estimate, const SGDPHOptions& options) {
  state.refreshes(state.refreshes() + 1);
  probe_kind(options.probe()).absorb(state, estimate, options);
}

at::Tensor rectified_curvature(
    const SGDPHParamState& state, const at::Tensor& parameter, const SGDPHOptions& options, int64_t exponent) {
  auto curvature = state.curvature().defined()
                       ? state.curvature().abs()
                       : at::zeros_like(parameter, at::promote_types(parameter.scalar_type(), at::kFloat));
  if (const double floor = options.effective_curvature_floor(); floor > 0) {
    curvature = at::maximum(curvature, curvature.mean() * floor);
  }
  const auto& kind = probe_kind(options.probe());
  const bool holds_eps = options.rule() == Rule::Paper && !kind.averages_signed;
  if (!holds_eps) curvature = curvature + options.eps();
  if (options.rule() == Rule::Reference && kind.starts_at_zero) {
    curvature = curvature / (1 - std::pow(options.hessian_momentum(), static_cast<double>(exponent)));
  }
  return curvature;
}

}  // namespace sgdph::sgd_ph
