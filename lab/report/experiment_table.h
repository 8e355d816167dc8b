#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/reference.h"

namespace sgdph::lab {

/// A row of an experiment's table: runs that differ by their seeds, and the paper's figure.
struct ExperimentRow {
  std::string label;
  std::vector<std::filesystem::path> runs;  ///< folders
  std::optional<ReferenceFigure> reference;
};

/// A table of an experiment: cells that are ranked together.
struct ExperimentTable {
  std::string title;
  std::string note;  ///< of the first table: where it stands in the paper, and what the scale changes
  std::vector<ExperimentRow> rows;
};

/// The tables of accuracies in a file that `sgdph reproduce` wrote (NAME.json). None if it is another kind of JSON; a
/// UserError if it is damaged.
std::vector<ExperimentTable> read_experiment_tables(const std::filesystem::path& file);

}  // namespace sgdph::lab
