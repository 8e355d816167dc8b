#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reproduce/experiment.h"
#include "study/run_plan.h"

namespace sgdph::lab::reproduce {

enum class Scale { Full, Desk };
const char* to_string(Scale scale);

/// What of an experiment is wanted, and how.
struct Selection {
  Scale scale = Scale::Desk;
  std::map<std::string, std::vector<std::string>> only;  ///< axis -> values; all of those not named
  std::vector<int64_t> seeds;                            ///< empty: as many as the experiment says
  settings::Layer options;                               ///< settings that leave results alone, of every run
  std::map<std::string, std::string> data_paths;         ///< by data set
};

/// A point of the grid.
struct Cell {
  std::vector<std::string> values;  ///< names, one for each axis
  std::string label;                ///< "cifar100, resnet18, SGD-PH"
  settings::Settings settings;      ///< resolved; the seed is left to the runs
};

/// The cells that are wanted, in the order of the grid.
std::vector<Cell> cells_of(const Experiment& experiment, const Selection& selection);

std::vector<int64_t> seeds_of(const Experiment& experiment, const Selection& selection);

/// The run of a cell and seed. Its folder is named after what it does (settings that are not the defaults go into a
/// short checksum), so that experiments that share a cell share its runs.
study::StudyRun run_of(const Cell& cell, int64_t seed, const std::filesystem::path& output_dir);

/// What the desk scale changes, a line for each setting: "epochs 200 -> 20".
std::vector<std::string> reductions(const Experiment& experiment, const Selection& selection);
/// Where cells have other numbers of runs than the selection says.
std::vector<std::string> reductions(
    const Experiment& experiment, const Selection& selection, size_t fewest_runs, size_t most_runs);

/// Refuses axes and values there are not.
void check_selection(const Experiment& experiment, const Selection& selection);

}  // namespace sgdph::lab::reproduce
