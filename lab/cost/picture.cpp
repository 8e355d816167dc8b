#include "cost/picture.h"

#include "cost/engine.h"
#include "tables/plot.h"
#include "tables/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace sgdph::lab::cost {
namespace {

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
