#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace sgdph::detail {

/// The number of non-finite values in the defined tensors. Cheap when there is none: a sum that is finite has finite
/// terms, so values are looked at one by one only where a sum is not.
int64_t count_non_finite(const std::vector<at::Tensor>& tensors);

}  // namespace sgdph::detail
