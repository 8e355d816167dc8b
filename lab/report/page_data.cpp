#include "report/page_data.h"

#include "base/escape.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <utility>

namespace sgdph::lab {
namespace {

/// A list of figures, short; null where there is none.
template <class T>
void append_list(std::string& out, const std::vector<T>& values) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isfinite(values[i])) {
        fmt::format_to(std::back_inserter(out), "{:.5g}", values[i]);
      } else {
        out += "null";
      }
    } else {
      fmt::format_to(std::back_inserter(out), "{}", values[i]);
    }
  }
  out += ']';
}

void append_series(std::string& out, const Series& series) {
  out += fmt::format(R"({{"label":{},"color":"{}","dash":)", nlohmann::json(series.label).dump(), series.style.colour);
  append_list(out, series.style.dashes);
  out += ",\"epoch\":";
  append_list(out, series.curves.epochs);
  out += ",\"seconds\":";
  append_list(out, series.curves.seconds);
  out += ",\"runs\":";
  append_list(out, series.curves.counts);
  out += ",\"mean\":[";
  for (const auto& curve : series.curves.metrics) {
    if (&curve != &series.curves.metrics.front()) out += ',';
    append_list(out, curve.mean);
  }
  out += "],\"std\":[";
  for (const auto& curve : series.curves.metrics) {
    if (&curve != &series.curves.metrics.front()) out += ',';
    append_list(out, curve.deviation);
  }
  out += "]}";
}

}  // namespace

std::string page_data(const std::vector<Task>& tasks) {
  std::string out = "{\"metrics\":[";
  for (const auto& metric : kMetrics) {
    if (&metric != &kMetrics.front()) out += ',';
    out += fmt::format(R"({{"title":"{}","unit":"{}"}})", metric.title, metric.unit);
  }
  out += "],\"tasks\":[";
  for (const auto& task : tasks) {
    if (&task != &tasks.front()) out += ',';
    out += "{\"series\":[";
    bool first = true;
    for (const auto& series : task.series) {
      if (series.runs.empty()) continue;
      if (!std::exchange(first, false)) out += ',';
      append_series(out, series);
    }
    out += "]}";
  }
  return escape_script(out + "]}");
}

}  // namespace sgdph::lab
