#include "cost/timing.h"

#include "base/clock.h"
#include "base/interrupt.h"

#include <algorithm>
#include <memory>
#include <optional>

namespace sgdph::lab::cost {
namespace {

constexpr int64_t kLeastRounds = 5;
// An engine this much slower than SGDM has its turn in every second round only, where the time is limited.
constexpr double kSlow = 3;

int64_t rounds_per_visit(const Engine& engine, const TimeLimit& limit) {
  return engine.expected > kSlow && limit.rounds == 0 && !limit.every_position ? 2 : 1;
}

/// A step as it happened, in order.
struct Event {
  size_t engine = 0;
  int64_t position = 0;
  double seconds = 0;
};

/// Where in the cycle visit `visit` of an engine goes. With a refresh on some steps only, half of the visits see one.
int64_t position_of(const EngineRun& run, int64_t visit) {
  if (run.blocks().empty()) return 0;
  if (run.engine().refresh_every() == 1) return tables::spread_position(visit, run.positions());
  return visit % 2 == 0 ? tables::spread_position(visit / 2, run.positions()) : tables::kNothingDue;
}

Event timed(size_t index, EngineRun& run, int64_t position) {
  run.prepare(position);
  const auto begin = seconds_now();
  run.step();
  return {index, position, seconds_now() - begin};
}

/// The median of the nearest SGDM steps, up to two on either side: one that stalled must not spoil its neighbours.
std::optional<double> reference_of(const std::vector<Event>& events, size_t at, size_t reference) {
  constexpr size_t kOnEitherSide = 2;
  std::vector<double> before;
  for (size_t i = at; i-- > 0 && before.size() < kOnEitherSide;) {
    if (events[i].engine == reference) before.push_back(events[i].seconds);
  }
  std::vector<double> found;
  for (size_t i = at + 1; i < events.size() && found.size() < kOnEitherSide; ++i) {
    if (events[i].engine == reference) found.push_back(events[i].seconds);
  }
  found.insert(found.end(), before.begin(), before.end());
  return found.empty() ? std::nullopt : std::optional(tables::median(found));
}

/// The index of SGDM with these layers.
std::optional<size_t> sgdm_index(const std::vector<Engine>& engines, models::Kernels kernels) {
  const auto found = std::find_if(engines.begin(), engines.end(), [&](const Engine& engine) {
    return engine.is_baseline() && engine.kernels == kernels;
  });
  if (found == engines.end()) return std::nullopt;
  return static_cast<size_t>(found - engines.begin());
}

/// Each step with its reference; SGDM is its own.
GroupTimes with_references(const std::vector<Event>& events, const std::vector<std::unique_ptr<EngineRun>>& runs) {
  GroupTimes times;
  std::vector<Engine> engines;
  for (const auto& run : runs) {
    engines.push_back(run->engine());
    times.engines.push_back({run->engine().name, run->blocks(), run->engine().refresh_every(), {}});
  }
  const auto fast = sgdm_index(engines, models::Kernels::Fast);
  const auto stock = sgdm_index(engines, models::Kernels::Stock);
  for (size_t i = 0; i < events.size(); ++i) {
    const auto& [engine, position, seconds] = events[i];
    const auto own = sgdm_index(engines, engines[engine].kernels);
    TORCH_INTERNAL_ASSERT(own, "the group of ", engines[engine].name, " has no SGDM");
    const auto reference = engine == *own ? std::optional(seconds) : reference_of(events, i, *own);
    if (reference) times.engines[engine].steps.push_back({position, seconds, *reference});
    if (engine != fast || !stock) continue;
    const auto other = reference_of(events, i, *stock);
    if (other) times.fast_to_stock.push_back(seconds / *other);
  }
  return times;
}

int64_t least_rounds(const TimeLimit& limit, const std::vector<std::unique_ptr<EngineRun>>& runs) {
  if (limit.rounds > 0) return limit.rounds;
  auto rounds = kLeastRounds;
  for (const auto& run : runs) {
    const auto visits = run->engine().refresh_every() == 1 ? run->positions() : 2 * run->positions();
    if (limit.every_position) rounds = std::max(rounds, visits);
  }
  return rounds;
}

tables::Figure figure_of(const EngineTimes& times, const std::function<double(const TimedStep&)>& value) {
  std::vector<tables::Sample> samples;
  std::vector<double> values;
  for (const auto& step : times.steps) {
    samples.push_back({step.position, value(step)});
    values.push_back(value(step));
  }
  return times.blocks.empty()
             ? tables::median_figure(std::move(values))
             : tables::cycle_figure(samples, static_cast<int64_t>(times.blocks.size()), times.refresh_every);
}

}  // namespace

tables::Figure EngineTimes::seconds() const {
  return figure_of(*this, [](const TimedStep& step) { return step.seconds; });
}

tables::Figure EngineTimes::ratio() const {
  return figure_of(*this, [](const TimedStep& step) { return step.seconds / step.reference; });
}

GroupTimes time_engines(
    const std::vector<Engine>& engines, const Workload& workload, const TimeLimit& limit,
    const ReportProgress& progress) {
  const TimedBatch batch(workload);
  std::vector<std::unique_ptr<EngineRun>> runs;
  for (const auto& engine : engines) runs.push_back(std::make_unique<EngineRun>(engine, workload, batch));
  // The cheapest turn warms up as well as any: what it leaves unseen is a small part of a step.
  for (auto& run : runs) {
    if (!interrupted()) timed(0, *run, run->positions() - 1);
  }
  std::vector<Event> events;
  const auto begin = seconds_now();
  const auto least = least_rounds(limit, runs);
  const auto over = [&](int64_t round) {
    return round >= least && (limit.rounds > 0 || seconds_now() - begin >= limit.seconds);
  };
  for (int64_t round = 0; !over(round) && !interrupted(); ++round) {
    for (size_t turn = 0; turn < runs.size() && !interrupted(); ++turn) {
      const auto index = (turn + static_cast<size_t>(round)) % runs.size();
      const auto every = rounds_per_visit(engines[index], limit);
      if (round % every != 0) continue;
      events.push_back(timed(index, *runs[index], position_of(*runs[index], round / every)));
      const auto done = static_cast<double>(round) + static_cast<double>(turn + 1) / static_cast<double>(runs.size());
      auto fraction = done / static_cast<double>(least);
      if (limit.rounds == 0) fraction = std::min(fraction, (seconds_now() - begin) / limit.seconds);
      progress(std::min(1., fraction), round + 1);
    }
  }
  return with_references(events, runs);
}

}  // namespace sgdph::lab::cost
