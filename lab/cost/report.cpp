#include "cost/report.h"

#include "cost/engine.h"
#include "tables/plot.h"
#include "tables/svg.h"
#include "tables/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace sgdph::lab::cost {
namespace {

std::string interval_text(const tables::Figure& figure) {
  return figure.has_interval() ? fmt::format("{:.2f} - {:.2f}", figure.low, figure.high) : "-";
}

/// "1.21x (1.32x)": mean and worst.
std::string memory_text(const records::MemoryFigures& figures) {
  if (figures.relative_mean == 0) return "-";
  if (figures.mean == figures.worst) return tables::ratio_text(figures.relative_mean);
  return fmt::format("{} ({})", tables::ratio_text(figures.relative_mean), tables::ratio_text(figures.relative_worst));
}

std::string seconds_text(double seconds) {
  return seconds < 0.1 ? fmt::format("{:.1f} ms", 1000 * seconds) : fmt::format("{:.3f} s", seconds);
}

tables::Table position_table(const records::CostRow& row) {
  tables::Table table;
  table.columns = {"block", "depth", "time / SGDM", "RSS / SGDM", "LibTorch's / SGDM", "steps timed"};
  for (const auto& position : row.positions) {
    table.rows.push_back(
        {position.block, std::to_string(position.depth), tables::ratio_text(position.ratio),
         tables::ratio_text(position.resident), tables::ratio_text(position.held), std::to_string(position.steps)});
  }
  return table;
}

tables::Document readable(const records::CostReport& report, bool positions) {
  tables::Document document;
  document.paragraph(fmt::format(
      "{}, {} threads, LibTorch {}, sgdph {}, {}", report.cpu, report.threads, report.libtorch, report.version,
      report.started));
  for (const auto& rows : by_workload(report)) {
    const auto& model = rows.front()->model;
    const auto batch_size = rows.front()->batch_size;
    document.table(fmt::format("{} ({} form), batch {}", model, report.form, batch_size), engine_table(rows), "cost");
    for (const auto& row : report.fast_to_stock) {
      if (row.model != model || row.batch_size != batch_size) continue;
      document.paragraph(fmt::format(
          "SGDM on the fast layers takes {:.2f}{} of its time on LibTorch's own.", row.ratio.value,
          row.ratio.has_interval() ? fmt::format(" ({})", interval_text(row.ratio)) : ""));
    }
    for (const auto* row : rows) {
      if (!positions) break;
      document.table(
          fmt::format("{}, {}, batch {}, by block", engine(row->engine).label, model, batch_size), position_table(*row),
          "cost");
    }
  }
  document.paragraph(
      "Time and memory of a step relative to SGDM with the same layers; for SGD-PH the mean over a cycle of blocks, "
      "memory also of the worst block (in brackets). RSS: above idle. LibTorch's: bytes held by its allocator.",
      "small");
  if (!report.resident_known) {
    document.paragraph("The peak of the resident set cannot be reset here, so RSS is not given.", "small");
  }
  return document;
}

/// For programs; 0 is not known.
std::string known_number(double value) {
  return value == 0 ? "" : tables::number_text(value);
}

tables::Table flat_table(const records::CostReport& report) {
  tables::Table table;
  table.columns = {"model", "batch_size", "engine", "layers", "ratio", "ratio_low", "ratio_high", "steps", "seconds"};
  for (const auto* memory : {"resident", "held"}) {
    for (const auto* figure : {"mean_bytes", "worst_bytes", "mean_relative", "worst_relative"}) {
      table.columns.push_back(fmt::format("{}_{}", memory, figure));
    }
  }
  table.columns.emplace_back("note");
  for (const auto& row : report.rows) {
    std::vector<tables::TableCell> cells{row.model, std::to_string(row.batch_size), row.engine, row.kernels};
    for (const auto value : {row.ratio.value, row.ratio.low, row.ratio.high}) cells.push_back(known_number(value));
    cells.push_back(std::to_string(row.ratio.count));
    cells.push_back(known_number(row.seconds.value));
    for (const auto* m : {&row.resident, &row.held}) {
      for (const auto value : {m->mean, m->worst, m->relative_mean, m->relative_worst})
        cells.push_back(known_number(value));
    }
    cells.push_back(row.note);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

tables::Table flat_positions(const records::CostReport& report) {
  tables::Table table;
  table.columns = {"model", "batch_size",        "engine",       "block", "depth", "ratio",
                   "steps", "resident_relative", "held_relative"};
  for (const auto& row : report.rows) {
    for (const auto& p : row.positions) {
      table.rows.push_back(
          {row.model, std::to_string(row.batch_size), row.engine, p.block, std::to_string(p.depth),
           known_number(p.ratio), std::to_string(p.steps), known_number(p.resident), known_number(p.held)});
    }
  }
  return table;
}

constexpr double kPanelWidth = 420;
constexpr double kPanelHeight = 300;
constexpr double kLeft = 56;
constexpr double kRight = 16;
constexpr double kTop = 44;
constexpr double kBottom = 46;
constexpr double kTitle = 40;  // above the panels
constexpr size_t kPanelsPerRow = 2;

constexpr const char* kStyle = ".one{stroke:var(--ink);stroke-dasharray:4 3}";

/// What is drawn: engines with a ratio, but SGDM, which is 1.
std::vector<const records::CostRow*> drawn_rows(const records::CostReport& report) {
  std::vector<const records::CostRow*> rows;
  for (const auto& row : report.rows) {
    if (row.ratio.count > 0 && std::isfinite(row.ratio.value) && !engine(row.engine).is_baseline()) {
      rows.push_back(&row);
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](auto* a, auto* b) { return a->batch_size < b->batch_size; });
  return rows;
}

tables::PlotAxis ratio_axis(const std::vector<const records::CostRow*>& rows) {
  tables::PlotAxis axis;
  axis.logarithmic = true;
  axis.low = 0.95;
  axis.high = 1.3;
  for (const auto* row : rows) {
    axis.low = std::min(axis.low, 0.97 * std::max(0.1, row->ratio.low));
    axis.high = std::max(axis.high, 1.05 * row->ratio.high);
  }
  return axis;
}

/// With room on both sides, so that a single size stands in the middle.
tables::PlotAxis batch_axis(const std::vector<const records::CostRow*>& rows) {
  std::set<double> sizes;
  for (const auto* row : rows) sizes.insert(static_cast<double>(row->batch_size));
  tables::PlotAxis axis;
  axis.logarithmic = true;
  axis.title = "batch size";
  axis.marks.assign(sizes.begin(), sizes.end());
  axis.low = sizes.empty() ? 1 : *sizes.begin() / 1.3;
  axis.high = sizes.empty() ? 2 : *sizes.rbegin() * 1.3;
  return axis;
}

/// The rows of a network, a line for each engine.
std::vector<tables::PlotLine> lines_of(
    const std::string& model, const std::vector<const records::CostRow*>& rows, tables::Palette& palette) {
  std::vector<tables::PlotLine> lines;
  for (const auto* row : rows) {
    if (row->model != model) continue;
    const auto& label = engine(row->engine).label;
    auto line = std::find_if(lines.begin(), lines.end(), [&](const auto& known) { return known.label == label; });
    if (line == lines.end()) {
      line = lines.insert(line, {label, palette.style_of(label, row->engine), tables::PlotLine::Spread::Bars, {}});
    }
    line->points.push_back({static_cast<double>(row->batch_size), row->ratio.value, row->ratio.low, row->ratio.high});
  }
  return lines;
}

}  // namespace

tables::Table engine_table(const std::vector<const records::CostRow*>& rows) {
  tables::Table table;
  table.columns = {"engine", "layers",     "time / SGDM",       "95 % interval",
                   "step",   "RSS / SGDM", "LibTorch's / SGDM", "steps timed"};
  std::vector<double> time;
  std::vector<double> resident;
  std::vector<double> held;
  for (const auto* row : rows) {
    const bool any = row->ratio.count > 0;
    table.rows.push_back(
        {engine(row->engine).label, row->kernels, tables::ratio_text(any ? row->ratio.value : 0),
         interval_text(row->ratio), any ? seconds_text(row->seconds.value) : "-", memory_text(row->resident),
         memory_text(row->held), row->note.empty() ? std::to_string(row->ratio.count) : row->note});
    // SGDM relative to itself is no measurement.
    if (engine(row->engine).is_baseline()) table.rows.back()[3] = "";
    time.push_back(any ? row->ratio.value : 0);
    resident.push_back(row->resident.relative_mean);
    held.push_back(row->held.relative_mean);
  }
  table.add_bars("time / SGDM", time);
  table.add_bars("RSS / SGDM", resident);
  table.add_bars("LibTorch's / SGDM", held);
  return table;
}

std::vector<std::vector<const records::CostRow*>> by_workload(const records::CostReport& report) {
  std::vector<std::vector<const records::CostRow*>> workloads;
  for (const auto& row : report.rows) {
    const auto same = [&](const auto& rows) {
      return rows.front()->model == row.model && rows.front()->batch_size == row.batch_size;
    };
    auto workload = std::find_if(workloads.begin(), workloads.end(), same);
    if (workload == workloads.end()) workload = workloads.insert(workload, std::vector<const records::CostRow*>());
    workload->push_back(&row);
  }
  return workloads;
}

tables::Presentation present(const records::CostReport& report, bool positions) {
  return {readable(report, positions), positions ? flat_positions(report) : flat_table(report), report};
}

std::string cost_picture(const records::CostReport& report) {
  const auto rows = drawn_rows(report);
  std::vector<std::string> models;
  for (const auto* row : rows) {
    if (std::find(models.begin(), models.end(), row->model) == models.end()) models.push_back(row->model);
  }
  const auto* title = "Time of a step relative to SGDM with the same layers";
  auto body = tables::svg::text(kLeft, 26, "start", title, " class=\"title\"");
  tables::Palette palette;
  std::vector<tables::PlotLine> keys;
  auto x = batch_axis(rows);
  auto y = ratio_axis(rows);
  for (size_t i = 0; i < models.size(); ++i) {
    const auto left = kPanelWidth * static_cast<double>(i % kPanelsPerRow);
    const auto line_of_panels = i / kPanelsPerRow;
    const auto top = kTitle + kPanelHeight * static_cast<double>(line_of_panels);
    x.from = left + kLeft;
    x.to = left + kPanelWidth - kRight;
    y.from = top + kPanelHeight - kBottom;
    y.to = top + kTop;
    body += tables::svg::text(x.from, y.to - 14, "start", models[i], " class=\"title\"");
    body += tables::plot_frame(x, y) + tables::svg::line("one", x.from, y.at(1), x.to, y.at(1));
    for (const auto& line : lines_of(models[i], rows, palette)) {
      body += tables::plot_line(line, x, y);
      const auto same = [&](const auto& key) { return key.label == line.label; };
      if (std::none_of(keys.begin(), keys.end(), same)) keys.push_back(line);
    }
  }
  const auto width = static_cast<double>(kPanelsPerRow) * kPanelWidth;
  const auto panel_rows = (models.size() + kPanelsPerRow - 1) / kPanelsPerRow;
  const auto legend =
      tables::plot_legend(keys, kLeft, width, kTitle + kPanelHeight * static_cast<double>(panel_rows) + 20);
  return tables::svg::open(width, legend.bottom, title, tables::kPlotStyle + std::string(kStyle)) + body + legend.svg +
         tables::svg::close();
}

}  // namespace sgdph::lab::cost
