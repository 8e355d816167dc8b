#pragma once

#include "signs.h"

#include <sgdph/sgd_ph_options.h>
#include <sgdph/sgd_ph_state.h>

#include <vector>

namespace sgdph::sgd_ph {

/// Whether the guard has yet to look at a block; `state` is null if there is none yet.
bool guard_asks(const SGDPHOptions& options, const SGDPHParamState* state);

/// Random signs, not all equal: with equal ones the product would be the row sum again.
at::Tensor mixed_signs_like(const at::Tensor& parameter, ProbePlace place);

/// The largest root mean square of the defined gradients, as a scalar tensor: what counts as zero is relative to it.
at::Tensor gradient_scale(const std::vector<at::Tensor>& gradients);

/// Whether the block's loss does not change when all its channels move together, so that its row sum is rounding noise
/// and dividing by it meaningless. Two cases:
///  * shift invariance (a bias that feeds softmax or LayerNorm): the row sum is below 1e3 machine epsilons of the
///    product with random signs;
///  * a zero block (a convolution bias before BatchNorm): product and gradient are both below 1e3 machine epsilons of
///    the largest gradient, that is, moving every channel by one would change nothing; or the product is exactly zero.
bool is_shift_invariant(
    const at::Tensor& row_sum, const at::Tensor& random_product, const at::Tensor& gradient, double scale);

}  // namespace sgdph::sgd_ph
