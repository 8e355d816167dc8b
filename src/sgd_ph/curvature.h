#pragma once

#include <sgdph/sgd_ph_options.h>
#include <sgdph/sgd_ph_state.h>

namespace sgdph::sgd_ph {

/// Takes a new estimate h = z * (H z) of a block into its state.
///   Ones        Reference: c <- a c + (1-a)|h|    Paper: c <- (1-a) c + a (|h| + eps)
///   Rademacher  Reference: c <- a c + (1-a) h     Paper: c <- (1-a) c + a h
///   Hadamard    c = mean of h over the last complete cycle; before that, of what there is
/// with a = hessian_momentum. Ones averages absolute values, as published; a random-sign estimate is noisy, and the
/// average of its absolute value would be biased upwards, so it is averaged signed and rectified afterwards.
/// `pace`: estimates come so many times as often, from so much less data (Refresh::Spread). The weight of the old value
/// is its 1/pace-th power then, and of Hadamard's cycles as many are averaged, so that noise and memory stay as they
/// are.
void absorb_estimate(SGDPHParamState& state, const at::Tensor& estimate, const SGDPHOptions& options, double pace = 1);

/// The positive curvature a block's momentum is divided by: |c|, at least `curvature_floor` of its mean over the block,
/// plus eps (which Ones under Paper holds already), divided by the bias correction 1 - a^exponent where c is an
/// average that started from zero and is to be corrected (Reference, and Spread under both rules; not Hadamard).
at::Tensor rectified_curvature(
    const SGDPHParamState& state, const at::Tensor& parameter, const SGDPHOptions& options, double exponent);

}  // namespace sgdph::sgd_ph
