#pragma once

#include <sgdph/api.h>

#include <ATen/core/Tensor.h>

#include <vector>

namespace sgdph::detail {

/// The number of non-finite values in the defined tensors. Cheap when there is none: values are counted one by
/// one only where some are found.
SGDPH_API int64_t count_non_finite(const std::vector<at::Tensor>& tensors);

}  // namespace sgdph::detail
