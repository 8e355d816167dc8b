#include "report/figure.h"

#include "base/escape.h"
#include "tables/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace sgdph::lab {
namespace {

constexpr double kWidth = 640;
constexpr double kTitleTop = 26;  // baseline of the first line
constexpr double kTitleLine = 18;
constexpr double kPlotHeight = 300;
constexpr double kPlotLeft = 64;
constexpr double kPlotRight = kWidth - 20;
constexpr double kBelowPlot = 62;  // ticks and the axis' name
constexpr double kRowHeight = 20;
constexpr double kLetter = 6.6;       // mean width of a letter of 12 px
constexpr double kTitleLetter = 8.2;  // of the title
constexpr double kLogFrom = 10;       // ratio from which a loss is drawn on a logarithmic axis
constexpr double kTicks = 6;

constexpr const char* kFigureStyle =
    "text{fill:#1f2328;font:12px sans-serif}.title{font-size:14px;font-weight:bold}.grid{stroke:#d8dee4}"
    ".axis{stroke:#1f2328}.key{stroke-width:2}.mean{fill:none;stroke-width:2;stroke-linejoin:round}"
    ".band{fill-opacity:0.18;stroke:none}";

/// From values to places.
struct PlotAxis {
  double low = 0;
  double high = 1;
  double from = 0;
  double to = 1;
  bool logarithmic = false;

  double at(double value) const {
    value = std::clamp(value, low, high);
    const auto part = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from + (to - from) * part;
  }
};

/// 1, 2 or 5 times a power of ten, for about so many steps in the range.
double tick_step(double range) {
  const auto rough = range / kTicks;
  const auto power = std::pow(10, std::floor(std::log10(rough)));
  for (const auto factor : {1., 2., 5.}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::vector<double> ticks_of(const PlotAxis& axis, bool whole) {
  std::vector<double> ticks;
  if (axis.logarithmic) {
    const auto decades = std::log10(axis.high / axis.low);
    const auto stride = std::max(1, static_cast<int>(decades / kTicks));
    const auto last = static_cast<int>(std::floor(std::log10(axis.high)));
    for (auto power = static_cast<int>(std::floor(std::log10(axis.low))); power <= last; power += stride) {
      for (const auto factor : {1., 2., 5.}) {
        const auto tick = factor * std::pow(10, power);
        if (tick >= axis.low && tick <= axis.high && (factor == 1 || decades < 3)) ticks.push_back(tick);
      }
    }
    return ticks;
  }
  const auto step = whole ? std::max(1., tick_step(axis.high - axis.low)) : tick_step(axis.high - axis.low);
  const auto first = std::ceil(axis.low / step - 1e-9);
  for (int i = 0; (first + i) * step <= axis.high + 1e-9 * step; ++i) ticks.push_back((first + i) * step);
  return ticks;
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

/// Metric and task, in as many lines as it takes.
std::vector<std::string> title_lines(const Task& task, size_t metric) {
  const auto fits = static_cast<size_t>((kWidth - kPlotLeft) / kTitleLetter);
  std::istringstream words(fmt::format("{}: {}", kMetrics[metric].title, task.title));
  std::vector<std::string> lines{""};
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > fits) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

/// The axis of the figures: all means and bands fit.
PlotAxis value_axis(const Task& task, size_t metric, double top) {
  Range means;
  Range all;
  for (const auto& series : task.series) {
    const auto& curve = series.curves.metrics[metric];
    for (size_t i = 0; i < curve.mean.size(); ++i) {
      means.add(curve.mean[i]);
      all.add(curve.mean[i] - curve.deviation[i]);
      all.add(curve.mean[i] + curve.deviation[i]);
    }
  }
  PlotAxis axis{0, 1, top + kPlotHeight, top};
  if (means.low > means.high) return axis;
  const bool loss = kMetrics[metric].unit[0] == '\0';
  if (loss && means.low > 0 && means.high / means.low > kLogFrom) {
    axis.logarithmic = true;
    axis.low = std::max(all.low, means.low / 2) / 1.1;
    axis.high = all.high * 1.1;
    return axis;
  }
  const auto room = std::max(0.04 * (all.high - all.low), 1e-6 * std::max(1., std::abs(all.high)));
  axis.low = all.low - room;
  axis.high = all.high + room;
  if (!std::isfinite(axis.high - axis.low)) return {0, 1, axis.from, axis.to};
  return axis;
}

PlotAxis epoch_axis(const Task& task) {
  Range range;
  for (const auto& series : task.series) {
    for (const auto epoch : series.curves.epochs) range.add(static_cast<double>(epoch));
  }
  if (range.low > range.high) range = {0, 1};
  if (range.low == range.high) range = {range.low - 1, range.high + 1};
  return {range.low, range.high, kPlotLeft, kPlotRight};
}

std::string frame(const char* unit, const PlotAxis& x, const PlotAxis& y) {
  std::string picture;
  for (const auto tick : ticks_of(y, false)) {
    picture += svg::line("grid", x.from, y.at(tick), x.to, y.at(tick));
    // A sum of steps may miss zero by a rounding.
    const auto value = std::abs(tick) < 1e-9 * (y.high - y.low) ? 0 : tick;
    picture +=
        svg::text(x.from - 8, y.at(tick) + 4, "end", fmt::format("{:.6g}{}", value, unit[0] == '\0' ? "" : " %"));
  }
  for (const auto tick : ticks_of(x, true)) {
    picture += svg::line("axis", x.at(tick), y.from, x.at(tick), y.from + 5);
    picture += svg::text(x.at(tick), y.from + 19, "middle", fmt::format("{:g}", tick));
  }
  picture += svg::line("axis", x.from, y.from, x.to, y.from);
  picture += svg::line("axis", x.from, y.from, x.from, y.to);
  return picture + svg::text((x.from + x.to) / 2, y.from + 38, "middle", "epoch");
}

void append_point(std::string& points, double x, double y) {
  fmt::format_to(std::back_inserter(points), "{}{:.1f},{:.1f}", points.empty() ? "" : " ", x, y);
}

std::string dash_attribute(const SeriesStyle& style) {
  return style.dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", fmt::join(style.dashes, " "));
}

std::string curve(const Series& series, size_t metric, const PlotAxis& x, const PlotAxis& y) {
  const auto& [mean, deviation] = series.curves.metrics[metric];
  std::string line;
  std::string upper;
  std::string lower;
  for (size_t i = 0, n = mean.size(); i < n; ++i) {
    const auto k = n - 1 - i;
    const auto place = [&](size_t at) { return x.at(static_cast<double>(series.curves.epochs[at])); };
    if (std::isfinite(mean[i])) {
      append_point(line, place(i), y.at(mean[i]));
      append_point(upper, place(i), y.at(mean[i] + deviation[i]));
    }
    if (std::isfinite(mean[k])) append_point(lower, place(k), y.at(mean[k] - deviation[k]));
  }
  if (line.empty()) return "";
  const bool spread = std::any_of(deviation.begin(), deviation.end(), [](double d) { return d > 0; });
  auto picture =
      spread
          ? fmt::format("<polygon class=\"band\" fill=\"{}\" points=\"{} {}\"/>\n", series.style.colour, upper, lower)
          : std::string();
  const auto name = escape_html(series.label);
  if (line.find(' ') == std::string::npos) {  // one point is no line
    const auto comma = line.find(',');
    return picture + fmt::format(
                         "<circle cx=\"{}\" cy=\"{}\" r=\"3\" fill=\"{}\"><title>{}</title></circle>\n",
                         line.substr(0, comma), line.substr(comma + 1), series.style.colour, name);
  }
  return picture + fmt::format(
                       "<polyline class=\"mean\" stroke=\"{}\"{} points=\"{}\"><title>{}</title></polyline>\n",
                       series.style.colour, dash_attribute(series.style), line, name);
}

/// As many entries on a row as fit; returns where it ends.
double add_legend(std::string& picture, const Task& task, double y) {
  double x = kPlotLeft;
  for (const auto& series : task.series) {
    if (series.runs.empty()) continue;
    const auto width = 46 + kLetter * static_cast<double>(series.label.size());
    if (x > kPlotLeft && x + width > kWidth) {
      x = kPlotLeft;
      y += kRowHeight;
    }
    picture += svg::line(
        "key", x, y, x + 22, y, fmt::format(" stroke=\"{}\"{}", series.style.colour, dash_attribute(series.style)));
    picture += svg::text(x + 28, y + 4, "start", series.label);
    x += width;
  }
  return y + kRowHeight;
}

}  // namespace

std::string curve_figure(const Task& task, size_t metric) {
  const auto x = epoch_axis(task);
  auto baseline = kTitleTop - kTitleLine;
  std::string body;
  for (const auto& line : title_lines(task, metric)) {
    body += svg::text(kPlotLeft, baseline += kTitleLine, "start", line, " class=\"title\"");
  }
  const auto y = value_axis(task, metric, baseline + kTitleLine);
  body += frame(kMetrics[metric].unit, x, y);
  for (const auto& series : task.series) body += curve(series, metric, x, y);
  const auto height = add_legend(body, task, y.from + kBelowPlot);
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
             "height=\"{1:.0f}\" role=\"img\">\n<title>{2}: {3}</title>\n<style>{4}</style>\n"
             "<rect fill=\"#ffffff\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n",
             kWidth, height, kMetrics[metric].title, escape_html(task.title), kFigureStyle) +
         body + "</svg>\n";
}

}  // namespace sgdph::lab
