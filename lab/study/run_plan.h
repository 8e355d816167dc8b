#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "records/run_record.h"
#include "settings/settings.h"

namespace sgdph::lab::study {

/// A run of a study: what it is called, where it is kept, what it does.
struct StudyRun {
  std::string name;
  std::filesystem::path folder;
  settings::Settings settings;  ///< resolved
};

/// Diverged, or finished with as many epochs as are planned.
bool is_over(const StudyRun& run);

/// Refuses, with a UserError, a folder that cannot take the run: one that holds a run of other settings, or a record
/// that cannot be read or continued. With `same_cost` what decides time and memory may not differ either.
void check_run_folder(const StudyRun& run, bool same_cost);

/// Refuses, with a UserError, a record that is of other settings than the run.
void check_same_settings(const StudyRun& run, const records::RunRecord& record);

/// Opens the data and builds each network, and every optimizer, once, so that bad input shows before anything is
/// written.
void check_inputs(const std::vector<StudyRun>& runs);

/// About how many seconds each run will take, or what is left of it; none for what is over. Bad input is a UserError.
/// Ends early, with zeros, when interrupted.
std::vector<double> forecast_seconds(const std::vector<StudyRun>& runs);

}  // namespace sgdph::lab::study
