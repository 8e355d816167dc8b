#include "base/names.h"

#include "base/error.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace sgdph::lab {
namespace {

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest_name(const std::string& name, const std::vector<std::string>& names) {
  std::optional<std::string> best;
  size_t best_distance = std::max<size_t>(1, name.size() / 3) + 1;
  for (const auto& candidate : names) {
    // A name begun and not finished is as near as a slip.
    const bool begun = name.size() > 2 && candidate.rfind(name, 0) == 0;
    const auto distance = begun ? 1 : edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(const std::string& name, const std::vector<std::string>& names) {
  const auto near = nearest_name(name, names);
  return near ? fmt::format(" (did you mean '{}'?)", *near) : "";
}

void refuse_name(const std::string& kind, const std::string& name, const std::vector<std::string>& names) {
  fail("unknown {} '{}'{}; there are {}", kind, name, suggestion(name, names), fmt::join(names, ", "));
}

void check_name(const std::string& kind, const std::string& name, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) == names.end()) refuse_name(kind, name, names);
}

}  // namespace sgdph::lab
