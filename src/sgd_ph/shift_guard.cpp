#include "sgd_ph/shift_guard.h"

#include "sgd_ph/probes.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sgdph::sgd_ph {
namespace {

constexpr double kEpsilons = 1e3;
constexpr double kLargestTolerance = 1e-2;

double machine_epsilon(at::ScalarType type) {
  if (type == at::kDouble) return std::numeric_limits<double>::epsilon();
  if (type == at::kHalf) return 0x1p-10;
  if (type == at::kBFloat16) return 0x1p-7;
  return std::numeric_limits<float>::epsilon();
}

double length(const at::Tensor& tensor) {
  return tensor.to(at::kDouble).norm().item<double>();
}

}  // namespace

bool guard_asks(const SGDPHOptions& options, const SGDPHParamState* state) {
  return options.shift_guard() && probe_kind(options.probe()).guarded && (state == nullptr || !state->guard_checked());
}

at::Tensor mixed_signs_like(const at::Tensor& parameter, ProbePlace place) {
  for (;; ++place.count) {
    auto signs = rademacher_like(parameter, place);
    const auto sum = signs.sum().abs().item<double>();
    if (parameter.numel() < 2 || sum < static_cast<double>(parameter.numel())) return signs;
  }
}

at::Tensor gradient_scale(const std::vector<at::Tensor>& gradients) {
  at::Tensor scale;
  for (const auto& gradient : gradients) {
    if (!gradient.defined() || gradient.numel() == 0) continue;
    const auto length = at::linalg_vector_norm(gradient.detach(), 2, at::OptionalIntArrayRef(), false, at::kDouble);
    const auto mean = length / std::sqrt(static_cast<double>(gradient.numel()));
    scale = scale.defined() ? at::maximum(scale, mean) : mean;
  }
  return scale.defined() ? scale : at::zeros({}, at::kDouble);
}

bool is_shift_invariant(
    const at::Tensor& row_sum, const at::Tensor& random_product, const at::Tensor& gradient, double scale) {
  // Capped: a thousand epsilons of a half-precision type are no small number.
  const double tolerance = std::min(kEpsilons * machine_epsilon(row_sum.scalar_type()), kLargestTolerance);
  const double product = length(random_product);
  if (product == 0 || length(row_sum) < tolerance * product) return true;
  const double noise = tolerance * scale * std::sqrt(static_cast<double>(row_sum.numel()));
  return product < noise && length(gradient) < noise;
}

}  // namespace sgdph::sgd_ph
