#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "report/sections.h"

namespace sgdph::lab::report {

enum class ReportFormat { Html, Markdown };
/// The formats by the names a command takes.
const std::map<std::string, ReportFormat>& report_formats();

struct ReportOptions {
  std::vector<std::filesystem::path> places;  ///< folders, and packed files
  std::string title;                          ///< empty: by the first place
  std::filesystem::path notes;                ///< a file of Markdown to stand first; empty: none
  std::filesystem::path figures;              ///< empty: none
  std::filesystem::path output;  ///< the file; empty: report.html or report.md in the first folder, or beside the file
  ReportFormat format = ReportFormat::Html;
};

/// Reads the records and puts the runs in comparisons and series.
ReportContent read_report(const ReportOptions& options);

/// Name of the picture of a comparison's metric.
std::string figure_name(const Comparison& comparison, size_t metric);

/// Name of the picture of a single series.
std::string accuracy_figure_name(const Comparison& comparison);

/// Name of a picture of an inspection's block; both count from 0.
std::string block_picture_name(size_t inspection, size_t picture);

/// Writes the report, figures first; returns the file. All is read and made before anything is written.
std::filesystem::path write_report(const ReportContent& content, const ReportOptions& options);

}  // namespace sgdph::lab::report
