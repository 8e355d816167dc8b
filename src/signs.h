#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sgdph {

/// Names one random draw: the same place gives the same signs, whatever was drawn before, on any device or rank. So a
/// checkpoint needs no generator state beyond the seed and the counts it holds anyway.
struct ProbePlace {
  uint64_t seed = 0;
  uint64_t stream = 0;     ///< what the draw is for
  uint64_t parameter = 0;  ///< position in the optimizer
  uint64_t count = 0;      ///< how many draws this parameter had before
};

/// Random signs in the shape and type of `parameter`.
at::Tensor rademacher_like(const at::Tensor& parameter, const ProbePlace& place);

/// Row `row` of the Sylvester-Hadamard matrix of order `cycle`, repeated along a 1-D parameter: channel i gets the sign
/// (-1)^popcount(row & (i mod cycle)).
at::Tensor hadamard_row_like(const at::Tensor& parameter, int64_t row, int64_t cycle);

}  // namespace sgdph
