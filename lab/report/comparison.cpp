#include "report/comparison.h"

#include "base/escape.h"
#include "optimizers/options.h"
#include "settings/settings.h"
#include "tables/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace sgdph::lab::report {
namespace {

using nlohmann::json;

// Points of a page's curves in all, which keeps its size in bounds.
constexpr size_t kPointBudget = 40000;
constexpr size_t kMostPoints = 500;
constexpr size_t kFewestPoints = 40;

/// The settings sorted by what they decide.
struct SplitSettings {
  json comparison = json::object();
  json series = json::object();
};

/// Settings we do not know are taken to matter. Those that a run of an earlier version lacks are as they always were.
SplitSettings split(const json& logged) {
  settings::Settings known;
  const auto fields = settings::fields_of(known);
  SplitSettings parts;
  auto settings = logged;
  for (const auto& field : fields) {
    if (field.is_set() && !settings.contains(field.key)) settings[field.key] = field.get();
  }
  for (const auto& [key, value] : settings.items()) {
    const auto* field = settings::find_field(fields, key);
    const bool ours = field != nullptr;
    if (ours && (field->series_name || !field->result)) continue;
    (ours && field->of_task ? parts.comparison : parts.series)[key] = value;
  }
  return parts;
}

/// How far a run got: one that is over is further than one that is not.
std::pair<bool, size_t> progress_of(const FoundRun& run) {
  return {run.record.over(), run.record.epochs.size()};
}

void add_run(Comparison& comparison, const FoundRun& run, json settings, std::vector<std::string>& notices) {
  const auto optimizer = run.settings.at("opt").get<std::string>();
  const auto same = [&](const auto& s) { return s.optimizer == optimizer && s.settings == settings; };
  auto series = std::find_if(comparison.series.begin(), comparison.series.end(), same);
  if (series == comparison.series.end()) {
    Series fresh;
    fresh.optimizer = optimizer;
    fresh.settings = std::move(settings);
    series = comparison.series.insert(series, std::move(fresh));
  }
  const auto twin = std::find_if(
      series->runs.begin(), series->runs.end(), [&](const auto* other) { return other->seed == run.seed; });
  if (twin == series->runs.end()) {
    series->runs.push_back(&run);
    return;
  }
  const auto* left_out = &run;
  if (progress_of(run) > progress_of(**twin)) std::swap(left_out, *twin);
  notices.push_back(fmt::format(
      "Left out: {} has the same settings and seed as {}, and would pass for another measurement", left_out->name,
      (*twin)->name));
}

/// The figures by the folders they name.
using References = std::map<std::filesystem::path, const ReferenceFigure*>;

std::filesystem::path real_path(const std::filesystem::path& folder) {
  std::error_code error;
  auto path = std::filesystem::weakly_canonical(folder, error);
  return error ? folder : path;
}

References by_folder(const std::vector<ReferenceFigure>& figures) {
  References references;
  for (const auto& figure : figures) {
    for (const auto& folder : figure.runs) references.emplace(real_path(folder), &figure);
  }
  return references;
}

std::optional<ReferenceFigure> reference_of(const Series& series, const References& references) {
  for (const auto* run : series.runs) {
    const auto found = references.find(real_path(run->record.folder));
    if (found != references.end()) return *found->second;
  }
  return std::nullopt;
}

void finish(Comparison& comparison, size_t points) {
  std::vector<study::RunGroup> groups;
  for (auto& series : comparison.series) {
    std::sort(series.runs.begin(), series.runs.end(), [](auto* a, auto* b) { return a->seed < b->seed; });
    study::RunGroup group{series.optimizer, series.label, std::max(series.planned, series.runs.size()), {}, 0};
    for (const auto* run : series.runs) group.runs.push_back(&run->record);
    groups.push_back(std::move(group));
    series.curves = make_curves(series.runs, points);
  }
  const auto rows = study::summarise_groups(groups);
  for (size_t i = 0; i < rows.size(); ++i) comparison.series[i].summary = rows[i];
  for (const auto& group : groups) {
    for (const auto* run : group.runs) comparison.validated = comparison.validated || run->validated;
  }
}

/// The tables of experiments, with the runs there are; `placed` are these. Of a table without any there is but a
/// notice.
std::vector<Comparison> experiment_comparisons(Collection& collection, std::set<const FoundRun*>& placed) {
  std::map<std::filesystem::path, const FoundRun*> runs;
  for (const auto& run : collection.runs) runs.emplace(real_path(run.record.folder), &run);
  std::vector<Comparison> comparisons;
  for (const auto& table : collection.experiments) {
    if (table.of_cost) continue;
    Comparison comparison;
    comparison.title = table.title;
    comparison.note = table.note;
    size_t present = 0;
    size_t absent = 0;
    for (const auto& row : table.rows) {
      Series series;
      series.optimizer = row.optimizer;
      series.label = row.label;
      series.planned = row.planned;
      series.reference = row.reference;
      for (const auto& folder : row.runs) {
        const auto found = runs.find(real_path(folder));
        ++(found == runs.end() ? absent : present);
        if (found == runs.end()) continue;
        series.runs.push_back(found->second);
        placed.insert(found->second);
      }
      comparison.series.push_back(std::move(series));
    }
    if (absent > 0) {
      collection.notices.push_back(
          fmt::format("Missing: {} of the {} runs of: {}", absent, absent + present, table.title));
    }
    if (present > 0) comparisons.push_back(std::move(comparison));
  }
  return comparisons;
}

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

/// Labels by the optimizer, and the settings that are not as with most of its series; then in the optimizers' order.
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

/// Titles for those that are made of runs alone, and names for files, no two of them alike.
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

}  // namespace

std::string Comparison::ranking() const {
  std::vector<double> ours;
  std::vector<double> theirs;
  for (const auto& one : series) {
    if (!one.reference || one.summary.top1.count == 0) continue;
    ours.push_back(one.summary.top1.mean);
    theirs.push_back(one.reference->value);
  }
  const auto agreement = tables::rank_agreement(ours, theirs);
  if (agreement.pairs == 0) return "";
  return fmt::format("Ranking of the means: {} (Kendall's tau {:.2f}).", agreement.words(), agreement.tau);
}

std::vector<Comparison> make_comparisons(Collection& collection) {
  std::set<const FoundRun*> placed;
  auto comparisons = experiment_comparisons(collection, placed);
  for (const auto& run : collection.runs) {
    if (placed.count(&run) > 0) continue;
    auto parts = split(run.settings);
    const auto same = [&](const auto& comparison) { return comparison.settings == parts.comparison; };
    auto comparison = std::find_if(comparisons.begin(), comparisons.end(), same);
    if (comparison == comparisons.end()) {
      Comparison fresh;
      fresh.settings = std::move(parts.comparison);
      comparison = comparisons.insert(comparison, std::move(fresh));
    }
    add_run(*comparison, run, std::move(parts.series), collection.notices);
  }
  const auto references = by_folder(collection.references);
  size_t count = 0;
  for (auto& comparison : comparisons) {
    count += comparison.series.size();
    if (comparison.settings.is_null()) continue;
    label_series(comparison.series);
    for (auto& series : comparison.series) series.reference = reference_of(series, references);
  }
  const auto points = std::clamp(kPointBudget / std::max<size_t>(count, 1), kFewestPoints, kMostPoints);
  for (auto& comparison : comparisons) finish(comparison, points);
  name_comparisons(comparisons);
  tables::Palette palette;
  for (auto& comparison : comparisons) {
    for (auto& series : comparison.series) series.style = palette.style_of(series.label, series.optimizer);
  }
  return comparisons;
}

}  // namespace sgdph::lab::report
