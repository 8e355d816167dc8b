#pragma once

#include <sgdph/api.h>

namespace sgdph {

/// Makes second derivatives of stock `torch::nn` models cheap, with no change to the model: replaces, for CPU tensors
/// and for the whole process, LibTorch's double backward of convolutions (which computes a weight gradient whether or
/// not it is asked for) and of batch norm (some thirty passes over the data) by ours. Forward passes and first
/// gradients go through LibTorch's own kernels and keep their bits; second and higher derivatives agree to rounding.
///
/// Call it once, before other threads use LibTorch. Calling it again changes nothing.
SGDPH_API void install_fast_operators();

/// Restores LibTorch's own, as `install_fast_operators` found them. Graphs built in between stay valid.
SGDPH_API void remove_fast_operators();

SGDPH_API bool fast_operators_installed();

}  // namespace sgdph
