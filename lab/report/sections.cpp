#include "report/sections.h"

#include "cost/report.h"
#include "inspect/report.h"
#include "report/report.h"
#include "report/tables.h"
#include "study/reading.h"

#include <fmt/format.h>

namespace sgdph::lab::report {
namespace {

tables::Document cost_experiment(const ExperimentTable& experiment) {
  tables::Document body;
  body.paragraph(experiment.note, "small");
  body.untitled_table(experiment.title, cost_comparison(experiment), "cost");
  return body.paragraph(experiment.verdict, "ranking");
}

tables::Document inspection_body(
    const FoundInspection& inspection, size_t index, const std::filesystem::path& figures) {
  std::vector<tables::Picture> pictures;
  for (size_t i = 0; i < inspection.pictures.size(); ++i) {
    const auto file = figures.empty() ? "" : (figures / block_picture_name(index, i)).generic_string();
    pictures.push_back({"Picture of a block: " + inspection.name, inspection.pictures[i], file});
  }
  return inspect::present(inspection.report).readable.pictures(pictures);
}

}  // namespace

tables::Document results_of(const Comparison& comparison) {
  tables::Document body;
  body.paragraph(comparison.note, "small");
  body.untitled_table("Results: " + comparison.title, result_table(comparison), "results");
  body.paragraph(comparison.ranking(), "ranking");
  std::vector<study::SummaryRow> rows;
  for (const auto& series : comparison.series) rows.push_back(series.summary);
  // Of one series there is nothing to compare.
  return rows.size() < 2 ? body : body.paragraph(study::reading(rows), "reading");
}

tables::Document details_of(const Comparison& comparison) {
  tables::Document settings;
  settings.table("Settings that differ", differing_settings(comparison), "settings");
  settings.table("Settings that all share", shared_settings(comparison), "settings shared");
  tables::Document runs;
  runs.untitled_table("Runs: " + comparison.title, run_table(comparison), "runs");
  return tables::Document().folded("Settings", settings).folded("Runs: result, machine, versions", runs);
}

std::vector<Section> sections_of(const ReportContent& content, const std::filesystem::path& figures) {
  const auto& found = content.found;
  std::vector<Section> sections;
  const auto add = [&](const char* kind, size_t index, const std::string& title, const tables::Document& body) {
    sections.push_back({fmt::format("{}-{}", kind, index), title, body});
  };
  for (size_t i = 0; i < found.experiments.size(); ++i) {
    const auto& experiment = found.experiments[i];
    if (experiment.of_cost) add("experiment", i, experiment.title, cost_experiment(experiment));
  }
  for (size_t i = 0; i < found.costs.size(); ++i) {
    add("cost", i, "Cost of a step: " + found.costs[i].name, cost::present(found.costs[i].report).readable);
  }
  for (size_t i = 0; i < found.inspections.size(); ++i) {
    const auto& inspection = found.inspections[i];
    add("inspection", i, "Curvature of blocks: " + inspection.name, inspection_body(inspection, i, figures));
  }
  if (!found.notices.empty()) add("notices", 0, "Left out", tables::Document().list(found.notices));
  return sections;
}

}  // namespace sgdph::lab::report
