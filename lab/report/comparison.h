#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

#include "report/collect.h"
#include "report/curves.h"
#include "study/summary.h"
#include "tables/plot.h"

namespace sgdph::lab::report {

/// Runs that differ by their seeds, and by what leaves the result alone.
struct Series {  // NOLINT(bugprone-exception-escape): the library's json moves without throwing
  std::string optimizer;
  std::string label;                  ///< the optimizer, and the settings in which its series differ
  std::vector<const FoundRun*> runs;  ///< none: a row of an experiment that is still to be run
  size_t planned = 0;
  nlohmann::json settings;  ///< without the comparison's, the seed and what leaves the result alone
  tables::LineStyle style;
  study::SummaryRow summary;
  Curves curves;
  std::optional<ReferenceFigure> reference;
};

/// Runs that are compared: those of a table of an experiment, or of the same data, network and number of epochs.
struct Comparison {  // NOLINT(bugprone-exception-escape): as above
  std::string title;
  std::string note;         ///< what an experiment says of itself
  std::string slug;         ///< the title in names of files
  nlohmann::json settings;  ///< data set, network and epochs; empty for an experiment
  std::vector<Series> series;
  bool validated = false;  ///< curves are of validation images

  const std::array<Metric, kMetrics.size()>& metrics() const { return validated ? kValidationMetrics : kMetrics; }
  /// Of one series that has runs: nothing to compare.
  bool is_single() const { return series.size() == 1 && !series.front().runs.empty(); }
  /// Whether the series rank as their references do, in a sentence; empty if there are no two to compare.
  std::string ranking() const;
};

/// The runs in comparisons and series, which point into the collection: experiments as they are laid out, then the runs
/// that are in none. Of runs with the same settings and seed, which would pass for several measurements, the one that
/// got furthest is taken and a notice names the others.
std::vector<Comparison> make_comparisons(Collection& collection);

}  // namespace sgdph::lab::report
