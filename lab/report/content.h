#pragma once

#include <string>
#include <vector>

#include "report/collect.h"
#include "report/comparison.h"

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

}  // namespace sgdph::lab::report
