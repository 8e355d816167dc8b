#include "report/page_data.h"

#include "base/escape.h"

#include <fmt/format.h>

#include <cstdlib>

namespace sgdph::lab::report {
namespace {

using nlohmann::json;

/// Figures of five digits, which keeps the page small; JSON has null for what is no number.
std::vector<double> rounded(std::vector<double> values) {
  for (auto& value : values) value = std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
  return values;
}

json series_json(const Series& series) {
  auto mean = json::array();
  auto deviation = json::array();
  for (const auto& curve : series.curves.metrics) {
    mean.push_back(rounded(curve.mean));
    deviation.push_back(rounded(curve.deviation));
  }
  return {
      {"label", series.label},
      {"color", series.style.colour},
      {"dash", series.style.dashes},
      {"epoch", series.curves.epochs},
      {"seconds", rounded(series.curves.seconds)},
      {"runs", series.curves.counts},
      {"mean", mean},
      {"std", deviation}};
}

}  // namespace

std::string page_data(const std::vector<Comparison>& comparisons) {
  json data{{"metrics", json::array()}, {"tasks", json::array()}};
  for (const auto& metric : kMetrics) data["metrics"].push_back({{"title", metric.title}, {"unit", metric.unit}});
  for (const auto& comparison : comparisons) {
    auto list = json::array();
    for (const auto& series : comparison.series) {
      if (!series.runs.empty()) list.push_back(series_json(series));
    }
    data["tasks"].push_back({{"series", list}});
  }
  return escape_script(data.dump());
}

}  // namespace sgdph::lab::report
