#pragma once

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "inspect/estimates.h"
#include "inspect/hessian_block.h"

namespace sgdph::lab {

/// What a figure is that cannot be told; null in JSON.
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// How well some numbers agree with a block's diagonal. Channels with a zero there are left out of signs and ratios.
struct Agreement {
  double cosine = kUnknown;
  double same_sign = kUnknown;     ///< share of channels
  double median_ratio = kUnknown;  ///< of |number| / |diagonal|
  double error = kUnknown;         ///< Frobenius norm of the difference relative to the diagonal's
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Agreement, cosine, same_sign, median_ratio, error)
Agreement agreement(const at::Tensor& numbers, const at::Tensor& diagonal);

/// What SGD-PH holds with a probe against the diagonal.
struct ProbeRow {
  std::string probe;
  Agreement estimate;          ///< of the running estimate
  Agreement divisor;           ///< of what the momentum is divided by, against the diagonal's absolute value
  std::vector<double> values;  ///< the running estimate, channel by channel
  std::vector<double> divisors;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProbeRow, probe, estimate, divisor, values, divisors)

/// The figures of one block.
struct BlockRow {
  std::string block;
  std::string kind;
  int64_t channels = 0;
  int64_t measured = 0;  ///< of them; with fewer the eigenvalues are those of the measured ones' part of the block
  bool shift_invariant = false;
  std::string note;                ///< why there are no figures
  double off_diagonal = kUnknown;  ///< Frobenius norm relative to the diagonal's
  Agreement row_sum;               ///< the paper's estimate
  double smallest_eigenvalue = kUnknown;
  double largest_eigenvalue = kUnknown;
  double asymmetry = kUnknown;      ///< rounding
  double product_error = kUnknown;  ///< the optimizer's own row sum against the rows summed up, relative
  std::vector<int64_t> rows;        ///< which channels
  std::vector<double> diagonal;
  std::vector<double> row_sums;
  std::vector<ProbeRow> probes;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    BlockRow, block, kind, channels, measured, shift_invariant, note, off_diagonal, row_sum, smallest_eigenvalue,
    largest_eigenvalue, asymmetry, product_error, rows, diagonal, row_sums, probes)

BlockRow block_row(const HessianBlock& hessian, const std::vector<HeldEstimate>& held);

}  // namespace sgdph::lab
