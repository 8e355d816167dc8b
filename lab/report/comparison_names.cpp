#include "report/comparison_names.h"

#include "base/escape.h"
#include "optimizers/options.h"
#include "settings/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace sgdph::lab::report {
namespace {

using nlohmann::json;

/// "cifar100, resnet18, 200 epochs", and what is not as usual.
std::string title_of(const json& settings, bool all) {
  const auto epochs = settings.value("epochs", json()).dump();
  auto title = fmt::format(
      "{}, {}, {} epoch{}", settings::plain_text(settings.at("dataset")), settings::plain_text(settings.at("model")),
      epochs, epochs == "1" ? "" : "s");
  const auto usual = settings::to_json(settings::Settings());
  std::set<std::string> named{"dataset", "model", "epochs"};
  if (!all) named.insert("form");
  for (const auto& [key, value] : settings.items()) {
    if (named.count(key) != 0) continue;
    if (!all && usual.contains(key) && usual.at(key) == value) continue;
    title += fmt::format(", {} {}", key, settings::plain_text(value));
  }
  return title;
}

size_t optimizer_place(const std::string& name) {
  const auto names = optimizers::optimizer_names();
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// The settings of an optimizer's series by key, and the value that more than half of them have, if any.
std::map<std::string, std::optional<json>> usual_settings(
    const std::vector<Series>& series, const std::string& optimizer) {
  std::map<std::string, std::map<json, size_t>> counts;
  size_t all = 0;
  for (const auto& one : series) {
    if (one.optimizer != optimizer) continue;
    ++all;
    for (const auto& [key, value] : one.settings.items()) ++counts[key][value];
  }
  std::map<std::string, std::optional<json>> usual;
  for (const auto& [key, values] : counts) {
    auto& chosen = usual[key];
    size_t with_key = 0;
    for (const auto& [value, times] : values) {
      with_key += times;
      if (2 * times > all) chosen = value;
    }
    if (2 * (all - with_key) > all) chosen = json();
  }
  return usual;
}

}  // namespace

void label_series(std::vector<Series>& series) {
  std::map<std::string, std::map<std::string, std::optional<json>>> usual;
  for (auto& one : series) {
    one.label = optimizers::optimizer_label(one.optimizer);
    if (usual.count(one.optimizer) == 0) usual[one.optimizer] = usual_settings(series, one.optimizer);
    for (const auto& [key, most] : usual[one.optimizer]) {
      const auto value = one.settings.value(key, json());
      if (most == value) continue;
      one.label +=
          value.is_null() ? fmt::format(", no {}", key) : fmt::format(", {} {}", key, settings::plain_text(value));
    }
  }
  std::stable_sort(series.begin(), series.end(), [](const auto& a, const auto& b) {
    const auto place = [](const Series& s) { return optimizer_place(s.optimizer); };
    if (place(a) != place(b)) return place(a) < place(b);
    return a.optimizer != b.optimizer ? a.optimizer < b.optimizer : a.settings < b.settings;
  });
}

void name_comparisons(std::vector<Comparison>& comparisons) {
  std::map<std::string, int> times;
  for (auto& one : comparisons) {
    if (!one.settings.is_null()) one.title = title_of(one.settings, false);
    ++times[one.title];
  }
  std::set<std::string> slugs;
  for (auto& one : comparisons) {
    if (times[one.title] > 1 && !one.settings.is_null()) one.title = title_of(one.settings, true);
    const auto slug = slug_of(one.title, "task");
    one.slug = slug;
    for (int i = 2; !slugs.insert(one.slug).second; ++i) one.slug = fmt::format("{}-{}", slug, i);
  }
}

}  // namespace sgdph::lab::report
