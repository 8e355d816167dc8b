#include "report/style.h"

#include "settings/optimizer_table.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace sgdph::lab {
namespace {

// Of middle lightness, so that they stand out on white and on black. First those of the optimizers, in their order.
constexpr const char* kPalette[] = {"#868e96", "#1098ad", "#4c6ef5", "#66a80f", "#ae3ec9", "#f08c00", "#e03131",
                                    "#a0744a", "#0ca678", "#f06595", "#7048e8", "#c0a000", "#339af0", "#d9480f"};
constexpr size_t kColours = std::size(kPalette);

const std::vector<std::vector<int>>& dash_patterns() {
  static const std::vector<std::vector<int>> patterns{{}, {7, 4}, {2, 3}, {10, 3, 2, 3}};
  return patterns;
}

}  // namespace

void style_series(std::vector<Task>& tasks) {
  const auto names = optimizer_names();
  std::map<std::string, SeriesStyle> styles;
  std::set<size_t> taken;
  size_t next = names.size();
  for (auto& task : tasks) {
    for (auto& series : task.series) {
      const auto known = styles.find(series.label);
      if (known == styles.end()) {
        const auto place = static_cast<size_t>(std::find(names.begin(), names.end(), series.optimizer) - names.begin());
        const bool own = place < names.size() && taken.insert(place).second;
        const auto index = own ? place : next++;
        const auto& patterns = dash_patterns();
        series.style = {kPalette[index % kColours], patterns[index / kColours % patterns.size()]};
        styles[series.label] = series.style;
      } else {
        series.style = known->second;
      }
    }
  }
}

}  // namespace sgdph::lab
