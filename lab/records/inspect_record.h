#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "records/run_record.h"

namespace sgdph::lab::records {

/// What a figure is that cannot be told; null in JSON.
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// How well some numbers agree with a block's diagonal. Channels with a zero there are left out of signs and ratios.
struct Agreement {
  double cosine = kUnknown;
  double same_sign = kUnknown;     ///< share of channels
  double median_ratio = kUnknown;  ///< of |number| / |diagonal|
  double error = kUnknown;         ///< Frobenius norm of the difference relative to the diagonal's
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Agreement, cosine, same_sign, median_ratio, error)

/// What SGD-PH holds with a probe against the diagonal.
struct ProbeRow {
  std::string probe;
  Agreement estimate;          ///< of the running estimate
  Agreement divisor;           ///< of what the momentum is divided by, against the diagonal's absolute value
  std::vector<double> values;  ///< the running estimate, channel by channel
  std::vector<double> divisors;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ProbeRow, probe, estimate, divisor, values, divisors)

/// The figures of one block.
struct BlockRow {
  std::string block;
  std::string kind;
  int64_t channels = 0;
  int64_t measured = 0;  ///< of them; with fewer the eigenvalues are those of the measured ones' part of the block
  bool shift_invariant = false;
  std::string note;                ///< why there are no figures
  double off_diagonal = kUnknown;  ///< Frobenius norm relative to the diagonal's
  double over_shards = kUnknown;   ///< standard deviation of an estimate over parts of the batch, likewise
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
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    BlockRow, block, kind, channels, measured, shift_invariant, note, off_diagonal, over_shards, row_sum,
    smallest_eigenvalue, largest_eigenvalue, asymmetry, product_error, rows, diagonal, row_sums, probes)

/// Smallest, median and largest of a figure over blocks.
struct Range {
  double least = kUnknown;
  double median = kUnknown;
  double most = kUnknown;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Range, least, median, most)

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
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    Verdict, blocks, not_diagonal, in_part, off_diagonal, same_sign, row_sum_ratio, row_sum_error, shift_invariant,
    text)

/// What was looked at, and what was found.
struct InspectReport : MachineFacts {
  std::string model, norm, dataset;
  double width = 1;
  std::string source;  ///< of the weights
  int64_t batch_size = 0;
  int64_t shards = 0;  ///< parts of the batch; 0: not asked
  double loss = 0;
  std::string precision;
  std::string rule;
  int64_t refreshes = 0;
  int64_t probe_cycle = 0;
  double hessian_momentum = 0;
  int64_t seed = 0;
  int64_t products = 0;  ///< done
  double seconds = 0;
  int64_t planned = 0;  ///< blocks
  std::vector<BlockRow> rows;
  Verdict verdict;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    InspectReport, model, norm, dataset, width, source, batch_size, shards, loss, precision, rule, refreshes,
    probe_cycle, hessian_momentum, seed, products, seconds, planned, cpu, libtorch, version, started, threads, rows,
    verdict)

/// From the text of a file of JSON: null is a figure that is not known, and what is missing is as in an empty report. A
/// UserError if it is another kind of file.
InspectReport read_inspect_report(const std::filesystem::path& file, const std::string& text);

}  // namespace sgdph::lab::records
