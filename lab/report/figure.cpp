#include "report/figure.h"

#include "tables/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace sgdph::lab::report {
namespace {

constexpr double kWidth = 640;
constexpr double kTitleTop = 26;  // baseline of the first line
constexpr double kTitleLine = 18;
constexpr double kPlotHeight = 300;
constexpr double kPlotLeft = 64;
constexpr double kPlotRight = kWidth - 20;
constexpr double kBelowPlot = 62;     // ticks and the axis' name
constexpr double kTitleLetter = 8.2;  // mean width of a letter of the title
constexpr double kLogFrom = 10;       // ratio from which a loss is drawn on a logarithmic axis

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

/// In as many lines as it takes.
std::vector<std::string> title_lines(const std::string& title) {
  const auto fits = static_cast<size_t>((kWidth - kPlotLeft) / kTitleLetter);
  std::istringstream words(title);
  std::vector<std::string> lines{""};
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > fits) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

tables::PlotLine line_of(const Series& series, size_t metric, std::string label) {
  tables::PlotLine line{std::move(label), series.style, tables::PlotLine::Spread::Band, {}};
  const auto& [mean, deviation] = series.curves.metrics[metric];
  for (size_t i = 0; i < mean.size(); ++i) {
    line.points.push_back({series.curves.epochs[i], mean[i], mean[i] - deviation[i], mean[i] + deviation[i]});
  }
  return line;
}

std::vector<tables::PlotLine> lines_of(const Comparison& comparison, size_t metric) {
  std::vector<tables::PlotLine> lines;
  for (const auto& series : comparison.series) {
    if (!series.runs.empty()) lines.push_back(line_of(series, metric, series.label));
  }
  return lines;
}

/// The axis of the figures: all means and bands fit.
tables::PlotAxis value_axis(const std::vector<tables::PlotLine>& lines, size_t metric, double top) {
  Extent means;
  Extent all;
  for (const auto& line : lines) {
    for (const auto& point : line.points) {
      means.add(point.y);
      all.add(point.low);
      all.add(point.high);
    }
  }
  tables::PlotAxis axis;
  axis.from = top + kPlotHeight;
  axis.to = top;
  const bool loss = kMetrics[metric].unit[0] == '\0';
  if (!loss) axis.unit = " %";
  if (means.low > means.high) return axis;
  if (loss && means.low > 0 && means.high / means.low > kLogFrom) {
    axis.logarithmic = true;
    axis.low = std::max(all.low, means.low / 2) / 1.1;
    axis.high = all.high * 1.1;
    return axis;
  }
  const auto room = std::max(0.04 * (all.high - all.low), 1e-6 * std::max(1., std::abs(all.high)));
  if (!std::isfinite(all.high + room - (all.low - room))) return axis;
  axis.low = all.low - room;
  axis.high = all.high + room;
  return axis;
}

tables::PlotAxis epoch_axis(const std::vector<tables::PlotLine>& lines) {
  Extent epochs;
  for (const auto& line : lines) {
    for (const auto& point : line.points) epochs.add(point.x);
  }
  tables::PlotAxis axis;
  axis.from = kPlotLeft;
  axis.to = kPlotRight;
  axis.whole = true;
  axis.title = "epoch";
  if (epochs.low > epochs.high) return axis;
  const double room = epochs.low == epochs.high ? 1 : 0;
  axis.low = epochs.low - room;
  axis.high = epochs.high + room;
  return axis;
}

std::string figure(const std::string& title, const std::vector<tables::PlotLine>& lines, size_t metric) {
  auto baseline = kTitleTop - kTitleLine;
  std::string body;
  for (const auto& words : title_lines(title)) {
    body += tables::svg::text(kPlotLeft, baseline += kTitleLine, "start", words, " class=\"title\"");
  }
  const auto x = epoch_axis(lines);
  const auto y = value_axis(lines, metric, baseline + kTitleLine);
  body += tables::plot_frame(x, y);
  for (const auto& line : lines) body += tables::plot_line(line, x, y);
  const auto legend = tables::plot_legend(lines, kPlotLeft, kWidth, y.from + kBelowPlot);
  return tables::svg::open(kWidth, legend.bottom, title, tables::kPlotStyle, tables::svg::Colours::Print) + body +
         legend.svg + tables::svg::close();
}

}  // namespace

std::string curve_figure(const Comparison& comparison, size_t metric) {
  const auto title = fmt::format("{}: {}", comparison.metrics()[metric].title, comparison.title);
  return figure(title, lines_of(comparison, metric), metric);
}

std::string accuracy_figure(const Comparison& comparison) {
  constexpr size_t kTested = 0;
  constexpr size_t kTraining = 2;
  const auto& series = comparison.series.front();
  auto training = line_of(series, kTraining, comparison.metrics()[kTraining].title);
  training.style.dashes = {6, 4};
  const auto title = fmt::format("{}: {}", series.label, comparison.title);
  return figure(title, {line_of(series, kTested, comparison.metrics()[kTested].title), training}, kTested);
}

}  // namespace sgdph::lab::report
