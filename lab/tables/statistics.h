#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
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
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
  int64_t count = 0;

  bool has_interval() const { return count >= 3; }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Estimate, value, low, high, count)

/// The median with the narrowest symmetric interval of order statistics that covers 95 %; smallest and largest value
/// where even these cover less (fewer than six values).
Estimate median_estimate(std::vector<double> values);

/// A measurement of a step, at a place of the cycle.
struct Sample {
  int64_t position = 0;  ///< of the block that was due; kNothingDue if none was
  double value = 0;
};
constexpr int64_t kNothingDue = -1;

/// The mean over a full cycle of `positions` blocks of which one is refreshed every `refresh_every` steps: the median
/// at each position measured, weighted by the positions nearest to it. The interval is a bootstrap over measurements,
/// of a fixed seed; it includes what comes from the choice of positions.
Estimate cycle_estimate(const std::vector<Sample>& samples, int64_t positions, int64_t refresh_every = 1);

/// The position of visit `visit`: each once in a cycle, and evenly spread after any number of visits.
int64_t spread_position(int64_t visit, int64_t positions);

}  // namespace sgdph::lab::tables
