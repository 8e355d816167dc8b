#include "inspect/verdict.h"

#include "tables/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sgdph::lab::inspect {
namespace {

// A block whose couplings have less than this part of its diagonal's norm passes for diagonal.
constexpr double kDiagonal = 0.1;

records::Range range_of(const std::vector<double>& values) {
  records::Range range;
  range.median = tables::median_known(values);
  for (const auto value : values) {
    if (!std::isfinite(value)) continue;
    range.least = std::isfinite(range.least) ? std::min(range.least, value) : value;
    range.most = std::isfinite(range.most) ? std::max(range.most, value) : value;
  }
  return range;
}

std::string times(const records::Range& range) {
  return fmt::format("{:.2f} to {:.2f} times (median {:.2f})", range.least, range.most, range.median);
}

std::string percents(const records::Range& range) {
  return fmt::format("{:.0f} to {:.0f} % (median {:.0f} %)", 100 * range.least, 100 * range.most, 100 * range.median);
}

std::string to_text(const records::Verdict& verdict) {
  const bool in_part = verdict.in_part > 0;
  std::string text;
  if (verdict.blocks == 0) {
    text = "No block here can tell whether the paper's claim holds that these Hessian blocks are diagonal.";
  } else if (verdict.not_diagonal == 0) {
    text = fmt::format(
        "The paper's claim that these Hessian blocks are diagonal holds here to {:.2g}: that is the largest "
        "off-diagonal norm relative to the diagonal's, of {}{} blocks.",
        verdict.off_diagonal.most, in_part ? "the rows measured of " : "", verdict.blocks);
  } else {
    text = fmt::format(
        "The paper's claim that these Hessian blocks are diagonal does not hold: {} of {} are not. The off-diagonal "
        "part of a block has {} the Frobenius norm of its diagonal{}. The product with ones, which the paper takes for "
        "the diagonal, is the row sum: it has the diagonal's sign on {} of a block's {}channels, is in the median "
        "channel {} as large, and is off by {} the diagonal's norm.",
        verdict.not_diagonal, verdict.blocks, times(verdict.off_diagonal), in_part ? ", of the rows measured" : "",
        percents(verdict.same_sign), in_part ? "measured " : "", times(verdict.row_sum_ratio),
        times(verdict.row_sum_error));
  }
  if (!verdict.shift_invariant.empty()) {
    text += fmt::format(
        " Shift-invariant, so that the row sum is nothing but rounding and SGD-PH's guard makes them first-order: {}.",
        fmt::join(verdict.shift_invariant, ", "));
  }
  return text;
}

}  // namespace

records::Verdict verdict_of(const std::vector<records::BlockRow>& rows) {
  records::Verdict verdict;
  std::vector<double> off_diagonal;
  std::vector<double> same_sign;
  std::vector<double> ratio;
  std::vector<double> error;
  for (const auto& row : rows) {
    if (row.shift_invariant) verdict.shift_invariant.push_back(row.block);
    if (row.shift_invariant || row.channels < 2 || !std::isfinite(row.off_diagonal)) continue;
    ++verdict.blocks;
    if (row.off_diagonal > kDiagonal) ++verdict.not_diagonal;
    if (row.measured < row.channels) ++verdict.in_part;
    off_diagonal.push_back(row.off_diagonal);
    same_sign.push_back(row.row_sum.same_sign);
    ratio.push_back(row.row_sum.median_ratio);
    error.push_back(row.row_sum.error);
  }
  verdict.off_diagonal = range_of(off_diagonal);
  verdict.same_sign = range_of(same_sign);
  verdict.row_sum_ratio = range_of(ratio);
  verdict.row_sum_error = range_of(error);
  verdict.text = to_text(verdict);
  return verdict;
}

}  // namespace sgdph::lab::inspect
