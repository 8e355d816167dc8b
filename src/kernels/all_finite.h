#pragma once

#include <ATen/core/Tensor.h>

namespace sgdph::kernels {

/// Whether the kernel takes the tensor: floating-point values on a CPU, without gaps.
bool all_finite_takes(const at::Tensor& tensor);

/// Whether every value is finite, in one pass over memory that asks LibTorch nothing.
bool all_finite(const at::Tensor& tensor);

}  // namespace sgdph::kernels
