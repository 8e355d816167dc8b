#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/collect.h"
#include "report/comparison.h"
#include "tables/document.h"

namespace sgdph::lab::report {

/// All that a report shows.
struct ReportContent {
  std::string title;
  std::string written;  ///< version and date
  std::string notes;    ///< a writer's, in Markdown; may be empty
  Collection found;
  std::vector<Comparison> comparisons;  ///< point into `found`

  ReportContent() = default;
  ReportContent(const ReportContent&) = delete;
  ReportContent& operator=(const ReportContent&) = delete;
  ReportContent(ReportContent&&) = default;
  ReportContent& operator=(ReportContent&&) = default;
};

/// A part of a report that is the same as text and on a page.
struct Section {
  std::string id;
  std::string title;
  tables::Document body;
};

/// What stands first of a comparison: its note, the results, how they rank.
tables::Document results_of(const Comparison& comparison);
/// What a reader may look up: settings and runs, folded.
tables::Document details_of(const Comparison& comparison);

/// What comes after the comparisons: cost, inspections, and what was left out. `figures`: the folder of pictures as
/// seen from the text; empty: they are not linked.
std::vector<Section> sections_of(const ReportContent& content, const std::filesystem::path& figures = {});

}  // namespace sgdph::lab::report
