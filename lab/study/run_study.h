#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/process.h"
#include "study/run_plan.h"

namespace sgdph::lab::study {

/// How the runs of a study are worked through.
struct StudyOptions {
  std::filesystem::path folder;  ///< of the study: holds claims, and a file or two in the meantime
  int64_t jobs = 1;              ///< runs side by side
  RunProcess run = run_process;  ///< how a run is started
};

/// Gives a run its share of threads, unless it says how many it wants, and marks its times as taken side by side.
void share_machine(settings::Settings& settings, int64_t jobs);

/// A run that has begun keeps its threads and workers, unless it is told how many to have, and the mark that it shared
/// the machine: other cores or neighbours are no reason to refuse what is there.
void keep_machine_of_begun(settings::Settings& settings, const std::filesystem::path& folder);

/// Runs what is not over yet, each in a process of its own so that peak memories do not mix, with a live view of
/// `table`. Any number of processes may work on one study: each takes runs that nobody has, waits for those of the
/// others, and takes over what one of them left. A run that fails stops none of the others; what it and the others warn
/// of is passed on. Returns the exit code: 0, 1 if a run failed other than by diverging, or that of an interruption.
int run_study(
    const std::vector<StudyRun>& runs, const StudyOptions& options, const std::function<std::string()>& table);

}  // namespace sgdph::lab::study
