#pragma once

#include <sgdph/sgd_ph.h>

#include "optimizers/options.h"

namespace sgdph::lab::optimizers {

/// The filter of resolved values; null for none. The curvature is measured all the same, so that time and random draws
/// are those of the run it is compared with.
SGDPH::CurvatureFilter curvature_control(const OptimizerValues& values);

/// Sets it, if the values have a control.
void set_curvature_control(torch::optim::Optimizer& optimizer, const OptimizerValues& values);

}  // namespace sgdph::lab::optimizers
