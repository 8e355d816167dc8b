#pragma once

#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

namespace sgdph::test {

using Tensors = std::vector<at::Tensor>;
/// Of some tensors, any of which may be undefined.
using TensorFunction = std::function<at::Tensor(const Tensors& inputs)>;

struct DerivativeCheck {
  double tolerance = 1e-10;  ///< relative to the largest value, or to 1
  bool every_subset = true;  ///< of what comes in for the double gradient and of what is asked; else all at once
  bool third = false;        ///< also the third derivative, through all that comes in
};

/// Value, gradient and double gradient of two functions agree; the reference is computed in double. Every defined input
/// is differentiated.
void expect_same_derivatives(
    const TensorFunction& ours, const TensorFunction& reference, const Tensors& inputs,
    const DerivativeCheck& check = {});

/// The largest difference relative to the largest expected value, or to 1; what is undefined counts as zero.
double relative_difference(const at::Tensor& found, const at::Tensor& expected);

/// The same bits, layout aside, with NaN equal to itself.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

/// The elements of `all` whose bits are set.
Tensors subset(const Tensors& all, size_t bits);

}  // namespace sgdph::test
