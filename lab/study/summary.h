#pragma once

#include <optional>
#include <string>
#include <vector>

#include "records/run_record.h"
#include "tables/document.h"
#include "tables/statistics.h"

namespace sgdph::lab::study {

/// The runs of one optimizer, or of one of its settings.
struct SummaryRow {
  std::string optimizer;
  std::string label;
  size_t planned = 0;
  size_t diverged = 0;
  size_t other_length = 0;                 ///< finished with fewer or more epochs, and so left out
  tables::Statistic top1;                  ///< last epoch, in per cent, of the finished runs
  tables::Statistic best_top1;             ///< best epoch: by validation, or without it by the test set itself
  bool validated = false;                  ///< there are figures of validation images
  tables::Statistic val_top1;              ///< on these, last epoch
  tables::Statistic ema_top1;              ///< of the moving average of the last weights, where there is one
  double seconds = 0;                      ///< mean training time of a run
  double memory = 0;                       ///< mean peak resident set, bytes
  std::optional<double> relative_seconds;  ///< to SGDM, if that finished
  std::optional<double> relative_memory;
  int64_t test_images = 0;       ///< fewest of a run; 0: unknown
  int64_t side_by_side = 1;      ///< most runs that shared the machine with one of them, itself counted
  std::vector<int64_t> threads;  ///< of its runs, each number once
  bool best = false;             ///< highest mean of the last epoch, or within the noise of it
};

struct PlannedRun {
  std::string optimizer;
  int64_t seed = 0;
  std::filesystem::path folder;
  int64_t epochs = 0;  ///< 0: any, as long as all have as many
};

/// What becomes a row: runs that differ by their seeds only.
struct RunGroup {
  std::string optimizer;
  std::string label;
  size_t planned = 0;
  std::vector<const records::RunRecord*> runs;  ///< those with a record
  int64_t epochs = 0;                           ///< of a run that counts; 0: as many as the longest has
};

/// One row for each optimizer in the order of the plan.
std::vector<SummaryRow> summarise(const std::vector<PlannedRun>& plan);
/// One row for each group.
std::vector<SummaryRow> summarise_groups(const std::vector<RunGroup>& groups);

/// The table for readers: the best accuracy is strong.
tables::Table summary_table(const std::vector<SummaryRow>& rows);

/// For readers with what the table shows in a sentence.
tables::Presentation present(const std::vector<SummaryRow>& rows);

}  // namespace sgdph::lab::study
