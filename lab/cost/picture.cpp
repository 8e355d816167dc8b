#include "cost/picture.h"

#include "base/escape.h"
#include "tables/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace sgdph::lab {
namespace {

constexpr double kPanelWidth = 420;
constexpr double kPanelHeight = 300;
constexpr double kLeft = 56;
constexpr double kRight = 16;
constexpr double kTop = 44;
constexpr double kBottom = 46;
constexpr double kTitle = 40;  // above the panels
constexpr double kLegendRow = 22;
constexpr double kTickGap = 15;  // least distance of two labels
constexpr size_t kPanelsPerRow = 2;
constexpr size_t kLegendPerRow = 3;

// Of middle lightness, so that they stand out on white and on black; in the order of the table of engines.
constexpr const char* kColours[] = {"#808080", "#2f9e44", "#66a80f", "#1098ad", "#ae3ec9", "#a0744a",
                                    "#e03131", "#f08c00", "#e599f7", "#808080", "#4c6ef5", "#22b8cf"};

constexpr const char* kStyle =
    ".one{stroke:var(--ink);stroke-dasharray:4 3}.line{fill:none;stroke-width:2}.bar{stroke-width:1.5}";

const char* colour_of(const std::string& name) {
  const auto names = engine_names();
  const auto index = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  return kColours[index % std::size(kColours)];
}

/// What is drawn: engines with a ratio, but SGDM, which is 1.
std::vector<const CostRow*> drawn_rows(const CostReport& report) {
  std::vector<const CostRow*> rows;
  for (const auto& row : report.rows) {
    if (row.ratio.count > 0 && std::isfinite(row.ratio.value) && !engine(row.engine).is_reference()) {
      rows.push_back(&row);
    }
  }
  return rows;
}

/// A logarithmic axis from values to places.
struct Axis {
  double low = 1;
  double high = 2;
  double from = 0;
  double to = 1;

  double at(double value) const { return from + (to - from) * std::log(value / low) / std::log(high / low); }
};

/// A panel of one network, with axes that all panels share.
class Panel {
 public:
  Panel(double x, double y, const Axis& ratios, const Axis& batches, const std::set<int64_t>& batch_sizes)
      : x_(x),
        y_(y),
        ratios_{ratios.low, ratios.high, y + kPanelHeight - kBottom, y + kTop},
        batches_{batches.low, batches.high, x + kLeft, x + kPanelWidth - kRight},
        batch_sizes_(batch_sizes) {}

  std::string frame(const std::string& title) const {
    auto picture = svg::text(x_ + kLeft, y_ + kTop - 14, "start", title, " class=\"title\"");
    double last = ratios_.from + kTickGap;
    for (const auto tick :
         {0.5, 0.75, 1., 1.1, 1.25, 1.5, 1.75, 2., 2.5, 3., 4., 5., 6., 8., 10., 15., 20., 30., 50.}) {
      const auto place = ratios_.at(tick);
      if (tick < ratios_.low || tick > ratios_.high || (tick != 1 && last - place < kTickGap)) continue;
      last = place;
      picture += svg::line(tick == 1 ? "one" : "grid", batches_.from, place, batches_.to, place);
      picture += svg::text(batches_.from - 8, place + 4, "end", fmt::format("{:g}", tick));
    }
    for (const auto size : batch_sizes_) {
      const auto place = batches_.at(static_cast<double>(size));
      picture += svg::line("axis", place, ratios_.from, place, ratios_.from + 5);
      picture += svg::text(place, ratios_.from + 18, "middle", std::to_string(size));
    }
    picture += svg::line("axis", batches_.from, ratios_.from, batches_.to, ratios_.from);
    picture += svg::line("axis", batches_.from, ratios_.from, batches_.from, ratios_.to);
    return picture + svg::text((batches_.from + batches_.to) / 2, ratios_.from + 36, "middle", "batch size");
  }

  /// The rows of one engine, by batch size.
  std::string curve(const std::vector<const CostRow*>& rows) const {
    const auto colour = colour_of(rows.front()->engine);
    std::string points;
    std::string marks;
    for (const auto* row : rows) {
      const auto x = batches_.at(static_cast<double>(row->batch_size));
      const auto y = ratios_.at(row->ratio.value);
      points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x, y);
      marks += svg::line(
          "bar", x, ratios_.at(row->ratio.low), x, ratios_.at(row->ratio.high), fmt::format(" stroke=\"{}\"", colour));
      marks += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"><title>{}: {:.2f}</title></circle>\n", x, y,
          colour, escape_html(engine(row->engine).label), row->ratio.value);
    }
    return fmt::format("<polyline class=\"line\" stroke=\"{}\" points=\"{}\"/>\n", colour, points) + marks;
  }

 private:
  double x_, y_;
  Axis ratios_, batches_;
  std::set<int64_t> batch_sizes_;
};

Axis ratio_axis(const std::vector<const CostRow*>& rows) {
  Axis axis{0.95, 1.3};
  for (const auto* row : rows) {
    axis.low = std::min(axis.low, 0.97 * std::max(0.1, row->ratio.low));
    axis.high = std::max(axis.high, 1.05 * row->ratio.high);
  }
  return axis;
}

Axis batch_axis(const std::set<int64_t>& sizes) {
  if (sizes.empty()) return {};
  // Room on both sides, so that a single size stands in the middle.
  return {static_cast<double>(*sizes.begin()) / 1.3, static_cast<double>(*sizes.rbegin()) * 1.3};
}

std::string legend(const std::vector<std::string>& names, double y) {
  std::string picture;
  const auto width = static_cast<double>(kPanelsPerRow) * kPanelWidth / static_cast<double>(kLegendPerRow);
  for (size_t i = 0; i < names.size(); ++i) {
    const auto x = kLeft + width * static_cast<double>(i % kLegendPerRow);
    const auto line = i / kLegendPerRow;
    const auto row = y + kLegendRow * static_cast<double>(line);
    picture += svg::line("line", x, row, x + 22, row, fmt::format(" stroke=\"{}\"", colour_of(names[i])));
    picture += svg::text(x + 30, row + 4, "start", engine(names[i]).label);
  }
  return picture;
}

}  // namespace

std::string cost_picture(const CostReport& report) {
  const auto rows = drawn_rows(report);
  std::vector<std::string> models;
  std::vector<std::string> names;
  std::set<int64_t> sizes;
  const auto note = [](std::vector<std::string>& list, const std::string& word) {
    if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
  };
  for (const auto* row : rows) {
    note(models, row->model);
    note(names, row->engine);
    sizes.insert(row->batch_size);
  }
  const auto panel_rows = (models.size() + kPanelsPerRow - 1) / kPanelsPerRow;
  const auto legend_rows = (names.size() + kLegendPerRow - 1) / kLegendPerRow;
  const auto width = static_cast<double>(kPanelsPerRow) * kPanelWidth;
  const auto legend_at = kTitle + kPanelHeight * static_cast<double>(panel_rows) + 20;
  const auto height = legend_at + kLegendRow * static_cast<double>(legend_rows);
  auto picture = svg::open(width, height, "Time of a step relative to SGDM", kStyle);
  picture += svg::text(kLeft, 26, "start", "Time of a step relative to SGDM with the same layers", " class=\"title\"");
  for (size_t i = 0; i < models.size(); ++i) {
    const auto column = i % kPanelsPerRow;
    const auto line = i / kPanelsPerRow;
    const Panel panel(
        kPanelWidth * static_cast<double>(column), kTitle + kPanelHeight * static_cast<double>(line), ratio_axis(rows),
        batch_axis(sizes), sizes);
    picture += panel.frame(models[i]);
    for (const auto& name : names) {
      std::vector<const CostRow*> curve;
      for (const auto* row : rows) {
        if (row->model == models[i] && row->engine == name) curve.push_back(row);
      }
      std::sort(curve.begin(), curve.end(), [](auto* a, auto* b) { return a->batch_size < b->batch_size; });
      if (!curve.empty()) picture += panel.curve(curve);
    }
  }
  return picture + legend(names, legend_at) + svg::close();
}

}  // namespace sgdph::lab
