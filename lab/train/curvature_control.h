#pragma once

#include <sgdph/sgd_ph.h>

#include "settings/settings.h"

namespace sgdph::lab {

/// Values of `curvature_control`: what stands in place of a block's curvature, to tell what the curvature contributes.
constexpr const char* kNoControl = "none";
constexpr const char* kBlockMean = "block-mean";         ///< its mean over the block
constexpr const char* kConstantMultiplier = "constant";  ///< what makes the multiplier lr_so / curvature a constant

/// Of a block whose curvature is lr_so: its step is as long as with SGDM.
constexpr double kPlainMultiplier = 1;

/// Refuses a multiplier without the control that uses it.
void check_curvature_control(const Settings& settings);

/// The filter of filled settings; null for none. The curvature is measured all the same, so that time and random draws
/// are those of the run it is compared with.
SGDPH::CurvatureFilter curvature_control(const Settings& settings);

}  // namespace sgdph::lab
