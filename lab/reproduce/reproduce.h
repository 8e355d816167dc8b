#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/process.h"
#include "reproduce/result.h"

namespace sgdph::lab::reproduce {

struct ReproduceOptions {
  Experiment experiment;
  Selection selection;
  std::filesystem::path output_dir;
  int64_t jobs = 1;  ///< runs side by side, each with its share of threads
  RunProcess run = run_process;
};

/// What is to be done, checked before anything is written.
struct ReproducePlan {
  std::vector<Cell> cells;
  std::vector<study::StudyRun> runs;   ///< seed by seed, so that a first complete table is there early
  std::vector<std::string> obstacles;  ///< runs that are left alone, and why: a line for each
  std::vector<double> seconds;         ///< of each run that is not over, estimated; empty if unknown
  std::string time_unknown;            ///< why it is: a measurement, or data that is missing
};

/// Mistakes in the selection are UserErrors; so is missing data, unless `only_look`. Folders that hold something else,
/// or a record that cannot be read, are obstacles: they are named and left as they are.
ReproducePlan plan_experiment(const ReproduceOptions& options, bool only_look);

/// Cells, runs, reductions, time: what is shown before it starts.
std::string plan_text(const ReproduceOptions& options, const ReproducePlan& plan);

/// Runs what is not over yet, and writes NAME.txt, .md, .csv, .json and -curves.csv to the folder, also when
/// interrupted: of the selection, and of what earlier calls have run of the grid. Returns the exit code: 0; 1 if a run
/// failed other than by diverging or has an obstacle; that of an interruption.
int run_experiment(const ReproduceOptions& options, const ReproducePlan& plan);

/// From the records as they are.
ExperimentResult result_of(const ReproduceOptions& options);

/// Of all records of the experiment in a folder or packed file, whoever trained them: the cells of the selection that
/// have one. A UserError if none has.
ExperimentResult result_from_records(const ReproduceOptions& options, const std::filesystem::path& records);

/// Writes NAME.txt, .md, .csv, .json and -curves.csv to the output folder.
void write_result(const ExperimentResult& result, const ReproduceOptions& options);

}  // namespace sgdph::lab::reproduce
