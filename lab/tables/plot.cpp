#include "tables/plot.h"

#include "base/escape.h"
#include "tables/svg.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

namespace sgdph::lab::tables {
namespace {

constexpr double kTicks = 6;  // about so many
constexpr double kRowHeight = 20;
constexpr double kLetter = 6.6;  // mean width of a letter of 12 px

constexpr const char* kColours[] = {"#868e96", "#1098ad", "#4c6ef5", "#66a80f", "#ae3ec9", "#f08c00", "#e03131",
                                    "#a0744a", "#0ca678", "#f06595", "#7048e8", "#c0a000", "#339af0", "#d9480f"};
constexpr size_t kSpare = 7;  // from here on first for labels that have no colour by name

/// A hash (FNV-1a, then mixed). With this seed the optimizers of version 0.1 have the first seven, each its own: SGDM
/// grey, SGD-PH red.
size_t slot_of(const std::string& name) {
  uint32_t hash = 191248789;
  for (const auto letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  hash = (hash ^ hash >> 15U) * 0x2c1b3c6dU;
  hash = (hash ^ hash >> 12U) * 0x297a2d39U;
  return (hash ^ hash >> 15U) % std::size(kColours);
}

const std::vector<std::vector<int>>& dash_patterns() {
  static const std::vector<std::vector<int>> patterns{{}, {7, 4}, {2, 3}, {10, 3, 2, 3}};
  return patterns;
}

/// 1, 2 or 5 times a power of ten, for about so many steps in the range.
double tick_step(double range) {
  const auto rough = range / kTicks;
  const auto power = std::pow(10, std::floor(std::log10(rough)));
  for (const auto factor : {1., 2., 5.}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::vector<double> ticks_of_decades(double low, double high) {
  std::vector<double> ticks;
  const auto decades = std::log10(high / low);
  const auto factors = decades < 1.5 ? std::vector<double>{1, 1.5, 2, 3, 5, 7}
                       : decades < 3 ? std::vector<double>{1, 2, 5}
                                     : std::vector<double>{1};
  const auto stride = std::max(1, static_cast<int>(decades / kTicks));
  const auto last = static_cast<int>(std::floor(std::log10(high)));
  for (auto power = static_cast<int>(std::floor(std::log10(low))); power <= last; power += stride) {
    for (const auto factor : factors) {
      const auto tick = factor * std::pow(10, power);
      if (tick >= low && tick <= high) ticks.push_back(tick);
    }
  }
  return ticks;
}

void append_point(std::string& points, double x, double y) {
  fmt::format_to(std::back_inserter(points), "{}{:.1f},{:.1f}", points.empty() ? "" : " ", x, y);
}

std::string stroke(const LineStyle& style) {
  auto text = fmt::format(" stroke=\"{}\"", style.colour);
  if (!style.dashes.empty()) text += fmt::format(" stroke-dasharray=\"{}\"", fmt::join(style.dashes, " "));
  return text;
}

std::string dot(double x, double y, const LineStyle& style, const std::string& words) {
  return fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}</title></circle>\n", x, y, style.colour,
      escape_html(words));
}

std::string band(const std::vector<PlotPoint>& points, const LineStyle& style, const PlotAxis& x, const PlotAxis& y) {
  if (std::none_of(points.begin(), points.end(), [](const auto& point) { return point.high > point.low; })) return "";
  std::string outline;
  for (const auto& point : points) append_point(outline, x.at(point.x), y.at(point.high));
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    append_point(outline, x.at(point->x), y.at(point->low));
  }
  return fmt::format("<polygon class=\"band\" fill=\"{}\" points=\"{}\"/>\n", style.colour, outline);
}

}  // namespace

const char* const kPlotStyle =
    ".key{stroke-width:2}.mean{fill:none;stroke-width:2;stroke-linejoin:round}.interval{stroke-width:1.5}"
    ".band{fill-opacity:0.18;stroke:none}";

size_t Palette::free_slot() {
  auto slot = kSpare;
  while (taken_.count(slot) > 0) ++slot;
  return slot;
}

LineStyle Palette::style_of(const std::string& label, const std::string& name) {
  const auto known = given_.find(label);
  if (known != given_.end()) return known->second;
  const auto own = slot_of(name);
  const auto slot = names_.insert(name).second && taken_.count(own) == 0 ? own : free_slot();
  taken_.insert(slot);
  const auto& patterns = dash_patterns();
  return given_[label] = {kColours[slot % std::size(kColours)], patterns[slot / std::size(kColours) % patterns.size()]};
}

double PlotAxis::at(double value) const {
  value = std::clamp(value, low, high);
  const auto part = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return from + (to - from) * part;
}

std::vector<double> PlotAxis::ticks() const {
  if (!marks.empty()) return marks;
  if (logarithmic && high / low >= 10) return ticks_of_decades(low, high);
  const auto step = whole ? std::max(1., tick_step(high - low)) : tick_step(high - low);
  const auto first = std::ceil(low / step - 1e-9);
  std::vector<double> ticks;
  for (int i = 0; (first + i) * step <= high + 1e-9 * step; ++i) {
    const auto tick = (first + i) * step;
    ticks.push_back(std::abs(tick) < 1e-9 * step ? 0 : tick);  // a rounding may miss it
  }
  return ticks;
}

std::string plot_frame(const PlotAxis& x, const PlotAxis& y) {
  std::string picture;
  for (const auto tick : y.ticks()) {
    picture += svg::line("grid", x.from, y.at(tick), x.to, y.at(tick));
    picture += svg::text(x.from - 8, y.at(tick) + 4, "end", fmt::format("{:.6g}{}", tick, y.unit));
  }
  for (const auto tick : x.ticks()) {
    picture += svg::line("axis", x.at(tick), y.from, x.at(tick), y.from + 5);
    picture += svg::text(x.at(tick), y.from + 19, "middle", fmt::format("{:.6g}{}", tick, x.unit));
  }
  picture += svg::line("axis", x.from, y.from, x.to, y.from);
  picture += svg::line("axis", x.from, y.from, x.from, y.to);
  return picture + svg::text((x.from + x.to) / 2, y.from + 38, "middle", x.title);
}

std::string plot_line(const PlotLine& line, const PlotAxis& x, const PlotAxis& y) {
  std::vector<PlotPoint> points;
  for (const auto& point : line.points) {
    if (std::isfinite(point.x) && std::isfinite(point.y)) points.push_back(point);
  }
  if (points.empty()) return "";
  std::string picture = line.spread == PlotLine::Spread::Band ? band(points, line.style, x, y) : "";
  std::string places;
  for (const auto& point : points) append_point(places, x.at(point.x), y.at(point.y));
  if (points.size() > 1) {
    picture += fmt::format(
        "<polyline class=\"mean\"{} points=\"{}\"><title>{}</title></polyline>\n", stroke(line.style), places,
        escape_html(line.label));
  }
  for (const auto& point : points) {
    if (points.size() > 1 && line.spread == PlotLine::Spread::Band) break;
    const auto at = x.at(point.x);
    if (point.high > point.low && line.spread == PlotLine::Spread::Bars) {
      picture += svg::line("interval", at, y.at(point.low), at, y.at(point.high), stroke({line.style.colour, {}}));
    }
    picture += dot(at, y.at(point.y), line.style, fmt::format("{}: {:.4g}", line.label, point.y));
  }
  return picture;
}

Legend plot_legend(const std::vector<PlotLine>& lines, double left, double right, double top) {
  Legend legend;
  auto x = left;
  for (const auto& line : lines) {
    const auto width = 46 + kLetter * static_cast<double>(line.label.size());
    if (x > left && x + width > right) {
      x = left;
      top += kRowHeight;
    }
    legend.svg += svg::line("key", x, top, x + 22, top, stroke(line.style));
    legend.svg += svg::text(x + 28, top + 4, "start", line.label);
    x += width;
  }
  legend.bottom = top + kRowHeight;
  return legend;
}

}  // namespace sgdph::lab::tables
