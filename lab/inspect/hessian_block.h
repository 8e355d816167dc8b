#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "inspect/blocks.h"

namespace sgdph::lab::inspect {

/// The loss whose curvature is looked at, computed anew with its graph.
using LossFunction = std::function<at::Tensor()>;

/// A block's own Hessian by brute force: a row is the product with a unit vector. With fewer rows than channels, what
/// is said of a row (its diagonal element, its sum) is still exact.
struct HessianBlock {
  Block block;
  std::vector<int64_t> channels;  ///< whose rows there are
  at::Tensor rows;                ///< [rows, channels of the block], float64
  bool shift_invariant = false;   ///< as the optimizer's guard finds
  at::Tensor optimizer_row_sum;   ///< of these channels, as the optimizer measures it; undefined if it does not

  bool complete() const { return rows.size(0) == rows.size(1); }
  bool finite() const;
  at::Tensor diagonal() const;
  at::Tensor row_sum() const;
  /// The rows' own channels only, made symmetric.
  at::Tensor square() const;
  /// All channels, symmetric; zero where neither row is known.
  at::Tensor filled() const;
  /// The largest |h_ij - h_ji| relative to the largest |h_ij|: rounding, if all is well.
  double asymmetry() const;
};

/// Products `measure_hessian` does: one for each row, and two of the optimizer's guard.
int64_t products_of(const Block& block, int64_t max_channels);

/// `parameters` are all of the network. Calls `after_product` after each product; ends early, with the rows there are,
/// when interrupted.
HessianBlock measure_hessian(
    const LossFunction& loss, const std::vector<at::Tensor>& parameters, const Block& block, int64_t max_channels,
    const std::function<void()>& after_product);

/// How much the estimate z * (H z) of the block differs between losses, of parts of a batch say, with the same random
/// signs z: its standard deviation, as a vector over `channels` its length. Unknown for fewer than two losses.
double deviation_over(
    const std::vector<LossFunction>& losses, const Block& block, const std::vector<int64_t>& channels, int64_t seed);

}  // namespace sgdph::lab::inspect
