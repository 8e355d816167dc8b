#include "report/report.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"
#include "report/figure.h"
#include "report/page.h"
#include "report/sections.h"

#include <fmt/ranges.h>

namespace sgdph::lab::report {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

/// The page as text: tables, and links to the figures if they were written. `figures` is their folder as seen from the
/// text; empty: none.
std::string render_markdown(const ReportContent& content, const std::filesystem::path& figures) {
  tables::Document body;
  for (const auto& comparison : content.comparisons) {
    std::vector<tables::Picture> pictures;
    if (comparison.is_single() && !figures.empty()) {
      pictures.push_back({"Accuracy", "", (figures / accuracy_figure_name(comparison)).generic_string()});
    }
    for (size_t i = 0; i < kMetrics.size() && !figures.empty(); ++i) {
      pictures.push_back({comparison.metrics()[i].title, "", (figures / figure_name(comparison, i)).generic_string()});
    }
    body.part(comparison.title, results_of(comparison).pictures(pictures).add(details_of(comparison)));
  }
  for (const auto& section : sections_of(content, figures)) body.part(section.title, section.body);
  const auto head = tables::Document().title(content.title).paragraph(content.written).markdown() + "\n";
  return head + (content.notes.empty() ? "" : content.notes + "\n") + body.markdown();
}

}  // namespace

const std::map<std::string, ReportFormat>& report_formats() {
  static const std::map<std::string, ReportFormat> formats{
      {"html", ReportFormat::Html}, {"markdown", ReportFormat::Markdown}};
  return formats;
}

ReportContent read_report(const ReportOptions& options) {
  ReportContent content;
  content.found = collect(options.places);
  content.comparisons = make_comparisons(content.found);
  auto place = fs::absolute(options.places.front()).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  content.title = options.title.empty() ? fmt::format("Report: {}", as_utf8(place.filename().string())) : options.title;
  if (!options.notes.empty()) content.notes = as_utf8(read_named_file(options.notes));
  std::vector<std::string> parts;
  const auto& runs = content.found.runs;
  const auto& costs = content.found.costs;
  const auto& inspections = content.found.inspections;
  if (!runs.empty()) {
    parts.push_back(
        fmt::format("{} of {}", count_text(runs.size(), "run"), count_text(content.comparisons.size(), "task")));
  }
  if (!costs.empty()) parts.push_back(count_text(costs.size(), "measurement") + " of cost");
  if (!inspections.empty()) parts.push_back(count_text(inspections.size(), "inspection"));
  content.written =
      fmt::format("{}. Written by sgdph {} on {}.", fmt::join(parts, ", "), sgdph_version(), time_stamp());
  return content;
}

std::string figure_name(const Comparison& comparison, size_t metric) {
  return fmt::format("{}-{}.svg", comparison.slug, comparison.metrics()[metric].slug);
}

std::string accuracy_figure_name(const Comparison& comparison) {
  return comparison.slug + "-accuracy.svg";
}

std::string block_picture_name(size_t inspection, size_t picture) {
  return fmt::format("blocks-{}-{}.svg", inspection + 1, picture + 1);
}

fs::path write_report(const ReportContent& content, const ReportOptions& options) {
  const bool html = options.format == ReportFormat::Html;
  std::error_code error;
  const auto& first = options.places.front();
  const auto folder = fs::is_directory(first, error) ? first : folder_of(first);
  auto file = options.output.empty() ? folder / (html ? "report.html" : "report.md") : options.output;
  if (fs::is_directory(file, error)) fail("--output: {} is a folder; give a file", file.string());
  const auto figures = options.figures.empty() ? fs::path() : fs::absolute(options.figures).lexically_normal();
  const auto seen =
      figures.empty() ? figures : figures.lexically_relative(fs::absolute(folder_of(file)).lexically_normal());
  const auto text = html ? render_page(content) : render_markdown(content, seen);
  if (!is_stream(file)) make_writable_folder(folder_of(file));
  if (!figures.empty()) {
    make_writable_folder(figures);
    for (const auto& comparison : content.comparisons) {
      if (comparison.is_single()) {
        write_own_file(figures / accuracy_figure_name(comparison), {accuracy_figure(comparison)});
      }
      for (size_t i = 0; i < kMetrics.size(); ++i) {
        write_own_file(figures / figure_name(comparison, i), {curve_figure(comparison, i)});
      }
    }
    const auto& inspections = content.found.inspections;
    for (size_t i = 0; i < inspections.size(); ++i) {
      for (size_t k = 0; k < inspections[i].pictures.size(); ++k) {
        write_own_file(figures / block_picture_name(i, k), {inspections[i].pictures[k]});
      }
    }
  }
  if (options.output.empty()) {
    write_own_file(file, {text});
  } else {
    write_file_atomically(file, {text});
  }
  return file;
}

}  // namespace sgdph::lab::report
