#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sgdph::lab::reproduce {

/// What the paper gives for a cell, and where; no value: it gives none, and `note` says so.
struct PaperFigure {
  std::optional<double> value;
  std::optional<double> deviation;
  std::string table;
  std::string section;
  std::string note;
};

/// The paper's figures of an experiment by the cell's values, one for each axis.
using PaperFigures = std::map<std::vector<std::string>, PaperFigure>;

/// CSV with a column for each axis, then value, std, table, section and note. Messages count lines after
/// `lines_before`, those of the file `where` before the text.
PaperFigures parse_paper_figures(
    const std::string& text, const std::vector<std::string>& axes, const std::string& where, size_t lines_before = 0);

}  // namespace sgdph::lab::reproduce
