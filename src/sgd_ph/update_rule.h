#pragma once

#include <sgdph/sgd_ph_options.h>
#include <sgdph/sgd_ph_state.h>

namespace sgdph::sgd_ph {

/// SGD with momentum: Reference buf <- mu buf + g + wd w, w <- w - lr buf; Paper m <- (1-b) m + b g,
/// w <- w - lr (m + wd w).
void first_order_step(at::Tensor& parameter, SGDPHParamState& state, const SGDPHOptions& options);

/// The step of a block: the momentum divided by `curvature`, decay outside of it. Reference buf <- mu buf + g, Paper
/// m <- (1-b) m + b g; w <- w - lr (lr_so m / curvature + wd w).
void second_order_step(
    at::Tensor& parameter, SGDPHParamState& state, const SGDPHOptions& options, const at::Tensor& curvature);

}  // namespace sgdph::sgd_ph
