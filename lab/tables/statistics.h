#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sgdph::lab::tables {

/// Mean and deviation (n - 1) of a figure over seeds.
struct Statistic {
  double mean = 0;
  double deviation = 0;  ///< 0 for one value
  size_t count = 0;
};
Statistic statistic(const std::vector<double>& values);
void to_json(nlohmann::json& json, const Statistic& figure);

/// The mean of the two in the middle of an even number; 0 of none.
double median(std::vector<double> values);
/// The median of those that are finite; not a number if none is.
double median_known(const std::vector<double>& values);

/// `count` of the numbers below `all`, evenly spread from the first to the last; all of them if there are no more.
std::vector<size_t> evenly_spread(size_t all, size_t count);

/// A figure, where it lies with 95 % confidence, and how many measurements stand behind it. Fewer than three give no
/// interval: then `low` and `high` are the value.
struct Figure {
  double value = 0;
  double low = 0;
  double high = 0;
  int64_t count = 0;

  bool has_interval() const { return count >= 3; }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Figure, value, low, high, count)

/// The median with the narrowest symmetric interval of order statistics that covers 95 %; smallest and largest value
/// where even these cover less (fewer than six values).
Figure median_figure(std::vector<double> values);

/// A measurement of a step, at a place of the cycle.
struct Sample {
  int64_t position = 0;  ///< of the block that was due; kNothingDue if none was
  double value = 0;
};
constexpr int64_t kNothingDue = -1;

/// The mean over a full cycle of `positions` blocks of which one is refreshed every `refresh_every` steps: the median
/// at each position measured, weighted by the positions nearest to it. The interval is a bootstrap over measurements,
/// of a fixed seed; it includes what comes from the choice of positions.
Figure cycle_figure(const std::vector<Sample>& samples, int64_t positions, int64_t refresh_every = 1);

/// The position of visit `visit`: each once in a cycle, and evenly spread after any number of visits.
int64_t spread_position(int64_t visit, int64_t positions);

/// How two orders of the same things agree.
struct RankAgreement {
  size_t pairs = 0;    ///< that both sides order; ties are left out
  size_t swapped = 0;  ///< of them, ordered the other way round
  double tau = 0;      ///< Kendall's tau-b: 1 the same order, -1 the opposite

  /// "the paper's ranking", "mostly the paper's ranking: 2 of 21 pairs swapped", ...
  std::string words() const;
};

/// Of figures of the same things; nothing is compared if there are fewer than two.
RankAgreement rank_agreement(const std::vector<double>& ours, const std::vector<double>& paper);

/// The rank of each figure from 1, equal ones sharing the better rank; highest first, or lowest.
std::vector<size_t> ranks_of(const std::vector<double>& figures, bool highest_first);

}  // namespace sgdph::lab::tables
