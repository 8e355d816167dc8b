#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sgdph::lab::report {

/// A test accuracy from elsewhere, such as a table of the paper, and the runs it stands beside.
struct ReferenceFigure {
  std::string source;                       ///< "Table 2 of the paper"
  double value = 0;                         ///< per cent
  std::optional<double> deviation;          ///< over runs, if it is given
  std::vector<std::filesystem::path> runs;  ///< folders
};

/// Name of the file that holds the figures for the runs below its folder.
constexpr const char* kReferenceFile = "reference.json";

/// {"figures": [{"source", "value", "deviation", "runs": [folders relative to the file]}]}. A UserError for a file of
/// another kind.
std::vector<ReferenceFigure> read_references(const std::filesystem::path& file, const std::string& text);

}  // namespace sgdph::lab::report
