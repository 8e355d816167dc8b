#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/reference.h"

namespace sgdph::lab::report {

/// A row of an experiment's table: runs that differ by their seeds, and the paper's figure.
struct ExperimentRow {
  std::string label;
  std::string optimizer;
  size_t planned = 0;                       ///< runs, whether they are there or not
  std::vector<std::filesystem::path> runs;  ///< folders
  std::optional<double> cost;               ///< relative to SGDM, in experiments of cost
  std::optional<ReferenceFigure> reference;
};

/// A table of an experiment: cells that are ranked together.
struct ExperimentTable {
  std::string title;
  std::string note;  ///< of the first table: where it stands in the paper, what the scale changes, what else to know
  bool of_cost = false;
  std::string verdict;  ///< on the ranking
  std::vector<ExperimentRow> rows;
};

/// The tables in a file that `sgdph reproduce` wrote (NAME.json); nothing if it is another kind of JSON. A UserError if
/// it is damaged.
std::optional<std::vector<ExperimentTable>> read_experiment_tables(
    const std::filesystem::path& file, const std::string& text);

}  // namespace sgdph::lab::report
