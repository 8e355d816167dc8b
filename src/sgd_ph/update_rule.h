#pragma once

#include <sgdph/sgd_ph_options.h>
#include <sgdph/sgd_ph_state.h>

#include <functional>

namespace sgdph::sgd_ph {

/// SGD with momentum: Reference buf <- mu buf + g + wd w, w <- w - lr buf; Paper m <- (1-b) m + b g,
/// w <- w - lr (m + wd w).
void first_order_step(at::Tensor& parameter, SGDPHParamState& state, const SGDPHOptions& options);

/// The step of a block: the momentum divided by `curvature`, decay outside of it. Reference buf <- mu buf + g, Paper
/// m <- (1-b) m + b g; w <- w - lr (lr_so m / curvature + wd w).
void second_order_step(
    at::Tensor& parameter, SGDPHParamState& state, const SGDPHOptions& options, const at::Tensor& curvature);

/// Whether the type has fewer digits than float32, so that a parameter loses the steps that are small beside it.
bool is_reduced(const at::Tensor& parameter);

/// For a parameter of a reduced type: makes the step with its float32 master in its place, and rounds. The master
/// starts as the parameter, and follows it where somebody else has written to it.
void step_master(at::Tensor& parameter, SGDPHParamState& state, const std::function<void(at::Tensor& master)>& step);

}  // namespace sgdph::sgd_ph
