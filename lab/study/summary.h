#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

#include "study/run_record.h"
#include "tables/table.h"

namespace sgdph::lab {

/// Mean and deviation (n - 1) of a figure over seeds.
struct Statistic {
  double mean = 0;
  double deviation = 0;  ///< 0 for one value
  size_t count = 0;
};
Statistic statistic(const std::vector<double>& values);
/// "77.96 +- 0.30", without a deviation for one value; "-" for none.
std::string accuracy_text(const Statistic& figure);

/// The runs of one optimizer, or of one of its settings.
struct SummaryRow {
  std::string optimizer;
  std::string label;
  size_t planned = 0;
  size_t diverged = 0;
  Statistic top1;                          ///< last epoch, in per cent, of the finished runs
  Statistic best_top1;                     ///< best epoch
  double seconds = 0;                      ///< mean training time of a run
  double memory = 0;                       ///< mean peak resident set, bytes
  std::optional<double> relative_seconds;  ///< to SGDM, if that finished
  std::optional<double> relative_memory;
  bool best = false;  ///< highest mean of the last epoch; several may share it
};

struct PlannedRun {
  std::string optimizer;
  int64_t seed = 0;
  std::filesystem::path folder;
};

/// What becomes a row: runs that differ by their seeds only.
struct RunGroup {
  std::string optimizer;
  std::string label;
  size_t planned = 0;
  std::vector<const RunRecord*> runs;  ///< those with a record
};

/// One row for each optimizer in the order of the plan.
std::vector<SummaryRow> summarise(const std::vector<PlannedRun>& plan);
/// One row for each group.
std::vector<SummaryRow> summarise_groups(const std::vector<RunGroup>& groups);

/// The table for readers, without a mark; accuracy stands in its second column.
Table summary_table(const std::vector<SummaryRow>& rows);

std::string render(const std::vector<SummaryRow>& rows, TableFormat format);

}  // namespace sgdph::lab
