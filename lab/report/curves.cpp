#include "report/curves.h"

#include "tables/statistics.h"

#include <cmath>
#include <limits>
#include <map>

namespace sgdph::lab::report {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double figure_in(const nlohmann::json& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number() ? found->get<double>() : kNone;
}

/// What the runs logged at the end of an epoch, or within it.
struct EpochFigures {
  size_t runs = 0;
  bool whole = false;           ///< the end of an epoch
  std::vector<double> seconds;  ///< of the epoch alone, until then
  std::array<std::vector<double>, kMetrics.size()> metrics;
};

using ByEpoch = std::map<double, EpochFigures>;

void add_record(EpochFigures& epoch, const nlohmann::json& record) {
  const auto cost = record.find("cost");
  const auto seconds = cost != record.end() && cost->is_object() ? figure_in(*cost, "train_seconds") : kNone;
  ++epoch.runs;
  if (std::isfinite(seconds)) epoch.seconds.push_back(seconds);
  for (size_t i = 0; i < kMetrics.size(); ++i) {
    auto figure = figure_in(record, kMetrics[i].key);
    if (std::isnan(figure)) figure = figure_in(record, kValidationMetrics[i].key);
    if (std::isfinite(figure)) epoch.metrics[i].push_back(figure);
  }
}

void add_epochs_of(ByEpoch& all, const FoundRun& run) {
  int64_t last = 0;
  for (const auto& record : run.record.epochs) {
    const auto logged = record.find("epoch");
    last = logged != record.end() && logged->is_number_integer() ? logged->get<int64_t>() : last + 1;
    auto& epoch = all[static_cast<double>(last)];
    epoch.whole = true;
    add_record(epoch, record);
  }
  for (const auto& record : run.record.evals) {
    const auto place = figure_in(record, "epoch");
    if (std::isfinite(place)) add_record(all[place], record);
  }
}

void add_epoch(Curves& curves, double number, double seconds, const EpochFigures& epoch) {
  curves.epochs.push_back(number);
  curves.seconds.push_back(seconds);
  curves.counts.push_back(epoch.runs);
  for (size_t i = 0; i < kMetrics.size(); ++i) {
    const auto figure = tables::statistic(epoch.metrics[i]);
    curves.metrics[i].mean.push_back(figure.count == 0 ? kNone : figure.mean);
    curves.metrics[i].deviation.push_back(figure.count == 0 ? kNone : figure.deviation);
  }
}

}  // namespace

Curves make_curves(const std::vector<const FoundRun*>& runs, size_t points) {
  ByEpoch all;
  for (const auto* run : runs) add_epochs_of(all, *run);
  Curves curves;
  const auto places = tables::evenly_spread(all.size(), points);
  auto place = places.begin();
  size_t index = 0;
  // A sum of means, since the mean of sums would fall where a slow run ends early.
  double seconds = 0;
  for (const auto& [number, epoch] : all) {
    const auto passed = seconds + (epoch.seconds.empty() ? kNone : tables::statistic(epoch.seconds).mean);
    if (epoch.whole) seconds = passed;
    if (index++ != *place) continue;
    ++place;
    add_epoch(curves, number, passed, epoch);
  }
  return curves;
}

}  // namespace sgdph::lab::report
