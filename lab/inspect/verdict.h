#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/figures.h"

namespace sgdph::lab {

/// Smallest, median and largest of a figure over blocks.
struct Range {
  double least = kUnknown;
  double median = kUnknown;
  double most = kUnknown;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Range, least, median, most)

/// Whether the blocks are diagonal, as the paper states, and the row sum so their diagonal.
struct Verdict {
  int64_t blocks = 0;        ///< that can tell: more than one channel, a diagonal, not shift-invariant
  int64_t not_diagonal = 0;  ///< of them
  int64_t in_part = 0;       ///< of them: not all rows were measured
  Range off_diagonal;
  Range same_sign;
  Range row_sum_ratio;
  Range row_sum_error;
  std::vector<std::string> shift_invariant;
  std::string text;  ///< a paragraph that says what the figures show, and no more
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    Verdict, blocks, not_diagonal, in_part, off_diagonal, same_sign, row_sum_ratio, row_sum_error, shift_invariant,
    text)

Verdict verdict_of(const std::vector<BlockRow>& rows);

}  // namespace sgdph::lab
