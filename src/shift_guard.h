#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace sgdph {

/// The largest root mean square of the defined gradients, as a scalar tensor: the scale below which a block counts as
/// zero.
at::Tensor gradient_scale(const std::vector<at::Tensor>& gradients);

/// Whether the block's loss does not change when all its channels move together, so that its row sum is rounding noise
/// and dividing by it meaningless. Two cases:
///  * shift invariance (a bias that feeds softmax or LayerNorm): the row sum is below 1e3 machine epsilons of the
///  product
///    with random signs;
///  * a zero block (a convolution bias before BatchNorm): product and gradient are both below 1e3 machine epsilons of
///    the largest gradient, that is, moving every channel by one would change nothing; or the product is exactly zero.
bool is_shift_invariant(
    const at::Tensor& row_sum, const at::Tensor& random_product, const at::Tensor& gradient, double scale);

}  // namespace sgdph
