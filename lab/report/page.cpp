#include "report/page.h"

#include "base/error.h"
#include "base/escape.h"
#include "report/figure.h"
#include "report/inspection_tables.h"
#include "report/notes.h"
#include "report/page_data.h"
#include "report/page_files.h"
#include "report/tables.h"

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sgdph::lab {
namespace {

std::string_view page_file(std::string_view name) {
  const auto* file = find_embedded(page_files(), name);
  if (!file) throw std::logic_error("no page file " + std::string(name));
  return file->text;
}

/// The template with {{name}} replaced, in one pass: what is put in is not looked at again.
std::string filled(std::string_view text, const std::map<std::string_view, std::string_view>& values) {
  std::string out;
  size_t from = 0;
  for (size_t open = text.find("{{"); open != std::string_view::npos; open = text.find("{{", from)) {
    const auto close = text.find("}}", open);
    out += text.substr(from, open - from);
    out += values.at(text.substr(open + 2, close - open - 2));
    from = close + 2;
  }
  return out += text.substr(from);
}

std::string cell_html(const TableCell& cell, bool first) {
  auto text = escape_html(cell.text);
  if (cell.strong) text = "<strong>" + text + "</strong>";
  if (cell.bar > 0) text = fmt::format(R"(<span class="bar" style="--part:{:.3f}">{}</span>)", cell.bar, text);
  return first ? "<th scope=\"row\">" + text + "</th>" : "<td>" + text + "</td>";
}

/// In a frame that scrolls by itself, which a narrow screen needs.
std::string table_html(const ReportTable& table, const char* kind, const std::string& caption) {
  if (table.rows.empty()) return "";
  auto html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table class=\"{1}\"><caption>{0}"
      "</caption>\n<thead><tr>",
      escape_html(caption), kind);
  for (const auto& column : table.columns) html += "<th scope=\"col\">" + escape_html(column) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) html += cell_html(row[i], i == 0);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string paragraph(const std::string& text, const char* kind = "") {
  return text.empty() ? "" : fmt::format("<p class=\"{}\">{}</p>\n", kind, escape_html(text));
}

/// A picture as an image of its own: its styles stay inside, and scripts in it do not run.
std::string image_html(const std::string& svg, const std::string& words) {
  return fmt::format(
      "<img class=\"picture\" alt=\"{}\" src=\"data:image/svg+xml;base64,{}\">\n", escape_html(words), base64(svg));
}

std::string task_html(const Task& task, size_t index) {
  const auto id = fmt::format("task-{}", index);
  const auto title = escape_html(task.title);
  const auto note = paragraph(task.note, "small");
  const auto results = table_html(result_table(task), "results", "Results: " + task.title);
  const auto ranking = paragraph(task.ranking(), "ranking");
  const auto runs = table_html(run_table(task), "runs", "Runs: " + task.title);
  const auto differing = table_html(differing_settings(task), "settings", "Settings that differ: " + task.title);
  const auto shared = table_html(shared_settings(task), "settings shared", "Settings that all share: " + task.title);
  // For readers without scripts, a picture of what the paper shows too.
  const auto figure = image_html(curve_figure(task, 0), fmt::format("{}: {}", kMetrics[0].title, task.title));
  return filled(
      page_file("task.html"), {{"id", id},
                               {"index", std::to_string(index)},
                               {"title", title},
                               {"note", note},
                               {"results", results},
                               {"ranking", ranking},
                               {"figure", figure},
                               {"runs", runs},
                               {"differing", differing},
                               {"shared", shared}});
}

std::string section_html(const std::string& id, const std::string& title, const std::string& body) {
  return filled(page_file("section.html"), {{"id", id}, {"title", escape_html(title)}, {"body", body}});
}

std::string cost_html(const FoundCost& cost, size_t index) {
  const auto& report = cost.report;
  auto body = paragraph(fmt::format(
      "{}: {}, {} threads, LibTorch {}, sgdph {}, seed {}, {}", cost.name, report.cpu, report.threads, report.libtorch,
      report.version, report.seed, report.started));
  for (const auto& rows : by_workload(report)) {
    body += table_html(
        cost_table(rows), "cost",
        fmt::format("{} ({} form), batch {}", rows.front()->model, report.form, rows.front()->batch_size));
  }
  body += paragraph(
      "Time and peak memory of a step relative to SGDM with the same layers; for SGD-PH the mean over a cycle of "
      "blocks, "
      "the worst block's memory in brackets.",
      "small");
  return section_html(fmt::format("cost-{}", index), "Cost of a step", body);
}

std::string cost_experiment_html(const ExperimentTable& experiment, size_t index) {
  const auto body = paragraph(experiment.note, "small") +
                    table_html(cost_comparison(experiment), "cost", experiment.title) +
                    paragraph(experiment.verdict, "ranking");
  return section_html(fmt::format("experiment-{}", index), experiment.title, body);
}

std::string inspection_html(const FoundInspection& inspection, size_t index) {
  auto body = paragraph(verdict_text(inspection));
  body += table_html(inspection_facts(inspection.facts), "facts", "Inspected: " + inspection.name);
  body += table_html(block_table(inspection.blocks), "blocks", "Blocks: " + inspection.name);
  const auto probes =
      table_html(probe_table(inspection.blocks), "blocks", fmt::format("{}: {}", kProbeTitle, inspection.name));
  if (!probes.empty()) body += probes + paragraph(kProbeWords, "small");
  for (const auto& svg : inspection.pictures) body += image_html(svg, "Picture of a block: " + inspection.name);
  return section_html(fmt::format("inspection-{}", index), "Curvature of blocks: " + inspection.name, body);
}

std::string notices_html(const std::vector<std::string>& notices) {
  if (notices.empty()) return "";
  std::string items = "<ul>\n";
  for (const auto& notice : notices) items += "<li>" + escape_html(notice) + "</li>\n";
  return section_html("notices", "Left out", items + "</ul>\n");
}

}  // namespace

std::string render_page(const ReportContent& content) {
  if (!find_embedded(page_files(), "chart.js")) {
    fail(
        "this sgdph was built without Chart.js, which the page needs; install libjs-chart.js and build again, or use "
        "--format markdown");
  }
  std::string links;
  std::string body;
  if (!content.notes.empty()) body += section_html("notes", "Notes", notes_html(content.notes));
  for (size_t i = 0; i < content.tasks.size(); ++i) {
    links += fmt::format("<li><a href=\"#task-{}\">{}</a></li>\n", i, escape_html(content.tasks[i].title));
    body += task_html(content.tasks[i], i);
  }
  const auto& experiments = content.found.experiments;
  for (size_t i = 0; i < experiments.size(); ++i) {
    if (!experiments[i].of_cost) continue;
    links += fmt::format("<li><a href=\"#experiment-{}\">{}</a></li>\n", i, escape_html(experiments[i].title));
    body += cost_experiment_html(experiments[i], i);
  }
  for (size_t i = 0; i < content.found.costs.size(); ++i) {
    links += fmt::format("<li><a href=\"#cost-{}\">Cost of a step</a></li>\n", i);
    body += cost_html(content.found.costs[i], i);
  }
  for (size_t i = 0; i < content.found.inspections.size(); ++i) {
    links += fmt::format("<li><a href=\"#inspection-{}\">Curvature of blocks</a></li>\n", i);
    body += inspection_html(content.found.inspections[i], i);
  }
  body += notices_html(content.found.notices);
  const auto title = escape_html(content.title);
  const auto written = escape_html(content.written);
  const auto data = page_data(content.tasks);
  return filled(
      page_file("page.html"), {{"title", title},
                               {"written", written},
                               {"links", links},
                               {"body", body},
                               {"data", data},
                               {"style", page_file("page.css")},
                               {"chart", page_file("chart.js")},
                               {"script", page_file("page.js")}});
}

}  // namespace sgdph::lab
