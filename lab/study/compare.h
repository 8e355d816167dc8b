#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/process.h"
#include "settings/recipe.h"
#include "study/summary.h"

namespace sgdph::lab::study {

struct CompareOptions {
  settings::Sources sources;  ///< of every run; `opt` and `seed` are the comparison's
  std::vector<std::string> optimizers;
  std::vector<int64_t> seeds;
  std::filesystem::path output_dir;
  int64_t jobs = 1;  ///< runs side by side, each with its share of threads
  RunProcess run = run_process;
};

/// A run of the comparison and its settings.
struct ComparedRun : PlannedRun {
  settings::Settings settings;  ///< resolved
};

/// Optimizers x seeds, seed by seed, so that a first complete comparison is there early. Every mistake in the settings
/// shows here, and runs of other settings in the folder are refused.
std::vector<ComparedRun> plan_comparison(const CompareOptions& options);

/// Runs what is not over yet, as run_study does; shows a live table.
/// Returns the exit code: 0, 1 if a run failed other than by diverging, or all diverged, or that of an interruption.
/// Writes summary.txt, .md, .csv and .json to the folder.
int run_comparison(const CompareOptions& options);

}  // namespace sgdph::lab::study
