#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cost/cost.h"
#include "cost/engine_run.h"

namespace sgdph::lab::cost {

/// One step of an engine. The reference is the median of the nearest SGDM steps with the same layers, up to two on
/// either side.
struct TimedStep {
  int64_t position = 0;
  double seconds = 0;
  double reference = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimedStep, position, seconds, reference)

struct EngineTimes {
  std::string engine;
  std::vector<std::string> blocks;
  int64_t refresh_every = 1;
  std::vector<TimedStep> steps;

  tables::Figure seconds() const;
  tables::Figure ratio() const;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EngineTimes, engine, blocks, refresh_every, steps)

/// Engines timed together.
struct GroupTimes {
  std::vector<EngineTimes> engines;
  std::vector<double> fast_to_stock;  ///< fast SGDM steps relative to the stock ones beside them, if both are there
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GroupTimes, engines, fast_to_stock)

/// What part of the work is done.
using ReportProgress = std::function<void(double fraction, int64_t rounds)>;

/// Times engines, SGDM among them, interleaved: a round is one step of each, in an order that is rotated from round to
/// round; where the time is limited, slow engines step in every second round. A first round warms up. Ends early, with
/// what there is, when interrupted.
GroupTimes time_engines(
    const std::vector<Engine>& engines, const Workload& workload, const TimeLimit& limit,
    const ReportProgress& progress);

}  // namespace sgdph::lab::cost
