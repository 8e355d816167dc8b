#include "train/curvature_control.h"

#include "base/error.h"

#include <ATen/Functions.h>

namespace sgdph::lab {

void check_curvature_control(const Settings& settings) {
  const auto multiplier = settings.block_multiplier.value_or(kPlainMultiplier);
  if (multiplier == kPlainMultiplier || settings.curvature_control == kConstantMultiplier) return;
  fail(
      "--block-multiplier: belongs to --curvature-control {}, not {}", kConstantMultiplier,
      settings.curvature_control.value_or(kNoControl));
}

SGDPH::CurvatureFilter curvature_control(const Settings& settings) {
  if (settings.curvature_control == kBlockMean) {
    return [](const at::Tensor& curvature) { return curvature.mean().expand_as(curvature).contiguous(); };
  }
  if (settings.curvature_control == kConstantMultiplier) {
    const auto stand_in = *settings.lr_so / *settings.block_multiplier;
    return [stand_in](const at::Tensor& curvature) { return at::full_like(curvature, stand_in); };
  }
  return nullptr;
}

}  // namespace sgdph::lab
