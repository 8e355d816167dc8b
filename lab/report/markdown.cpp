#include "report/markdown.h"

#include "base/escape.h"
#include "report/inspection_tables.h"
#include "report/report.h"
#include "report/tables.h"
#include "tables/table.h"

#include <fmt/format.h>

namespace sgdph::lab {
namespace {

std::string table_text(const ReportTable& table) {
  if (table.rows.empty()) return "";
  Table plain;
  for (const auto& column : table.columns) plain.columns.push_back(escape_markdown(column));
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (const auto& cell : row) {
      auto text = escape_markdown(cell.text);
      cells.push_back(cell.strong ? "**" + text + "**" : std::move(text));
    }
    plain.rows.push_back(std::move(cells));
  }
  return markdown_table(plain) + "\n";
}

std::string folded(const std::string& title, const std::string& body) {
  return body.empty() ? "" : fmt::format("<details><summary>{}</summary>\n\n{}</details>\n\n", title, body);
}

std::string task_text(const Task& task, const std::filesystem::path& figures) {
  auto text = fmt::format("## {}\n\n", escape_markdown(task.title));
  if (!task.note.empty()) text += escape_markdown(task.note) + "\n\n";
  text += table_text(result_table(task));
  const auto ranking = task.ranking();
  if (!ranking.empty()) text += escape_markdown(ranking) + "\n\n";
  if (!figures.empty()) {
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      const auto file = (figures / figure_name(task, i)).generic_string();
      text += fmt::format("![{}](<{}>)\n", kMetrics[i].title, file);
    }
    text += "\n";
  }
  text += folded("Settings that differ", table_text(differing_settings(task)));
  text += folded("Settings that all share", table_text(shared_settings(task)));
  return text + folded("Runs", table_text(run_table(task)));
}

std::string cost_text(const FoundCost& cost) {
  return fmt::format(
      "## Cost of a step: {}\n\n{}\n", escape_markdown(cost.name), render(cost.report, TableFormat::Markdown));
}

std::string cost_experiment_text(const ExperimentTable& experiment) {
  auto text = fmt::format("## {}\n\n", escape_markdown(experiment.title));
  if (!experiment.note.empty()) text += escape_markdown(experiment.note) + "\n\n";
  return text + fmt::format("{}{}\n\n", table_text(cost_comparison(experiment)), escape_markdown(experiment.verdict));
}

std::string probes_text(const FoundInspection& inspection) {
  const auto table = table_text(probe_table(inspection.blocks));
  return table.empty() ? "" : fmt::format("### {}\n\n{}\n{}\n\n", kProbeTitle, table, escape_markdown(kProbeWords));
}

std::string inspection_text(const FoundInspection& inspection, size_t index, const std::filesystem::path& figures) {
  std::string pictures;
  for (size_t i = 0; !figures.empty() && i < inspection.pictures.size(); ++i) {
    pictures +=
        fmt::format("![Picture of a block](<{}>)\n\n", (figures / block_picture_name(index, i)).generic_string());
  }
  return fmt::format(
      "## Curvature of blocks: {}\n\n{}\n\n{}{}{}{}", escape_markdown(inspection.name),
      escape_markdown(verdict_text(inspection)), folded("Facts", table_text(inspection_facts(inspection.facts))),
      table_text(block_table(inspection.blocks)), probes_text(inspection), pictures);
}

}  // namespace

std::string render_markdown(const ReportContent& content, const std::filesystem::path& figures) {
  auto text = fmt::format("# {}\n\n{}\n\n", escape_markdown(content.title), escape_markdown(content.written));
  if (!content.notes.empty()) text += content.notes + "\n";
  for (const auto& task : content.tasks) text += task_text(task, figures);
  for (const auto& experiment : content.found.experiments) {
    if (experiment.of_cost) text += cost_experiment_text(experiment);
  }
  for (const auto& cost : content.found.costs) text += cost_text(cost);
  const auto& inspections = content.found.inspections;
  for (size_t i = 0; i < inspections.size(); ++i) text += inspection_text(inspections[i], i, figures);
  if (!content.found.notices.empty()) {
    text += "## Left out\n\n";
    for (const auto& notice : content.found.notices) text += fmt::format("- {}\n", escape_markdown(notice));
  }
  return text;
}

}  // namespace sgdph::lab
