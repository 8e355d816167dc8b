#include "report/task.h"

#include "base/escape.h"
#include "report/style.h"
#include "settings/optimizer_table.h"
#include "tables/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace sgdph::lab {
namespace {

using nlohmann::json;

// Points of a page's curves in all, which keeps its size in bounds.
constexpr size_t kPointBudget = 40000;
constexpr size_t kMostPoints = 500;
constexpr size_t kFewestPoints = 40;

/// The settings sorted by what they decide.
struct SplitSettings {
  json task = json::object();
  json series = json::object();
};

/// Settings we do not know are taken to matter.
SplitSettings split(const json& settings) {
  Settings known;
  const auto fields = fields_of(known);
  SplitSettings parts;
  for (const auto& [key, value] : settings.items()) {
    const auto* field = find_field(fields, key);
    const bool ours = field != nullptr;
    if (key == "seed" || key == "opt" || (ours && field->leaves_result_alone())) continue;
    const bool of_task = ours && key != "kernels" &&
                         (key == "epochs" || field->part == Field::Part::Data || field->part == Field::Part::Model);
    (of_task ? parts.task : parts.series)[key] = value;
  }
  return parts;
}

/// "cifar100, resnet18, 200 epochs", and what is not as usual.
std::string title_of(const json& task, bool all) {
  const auto epochs = task.value("epochs", json()).dump();
  auto title = fmt::format(
      "{}, {}, {} epoch{}", plain_text(task.at("dataset")), plain_text(task.at("model")), epochs,
      epochs == "1" ? "" : "s");
  const auto usual = to_json(Settings());
  for (const auto& [key, value] : task.items()) {
    if (key == "dataset" || key == "model" || key == "epochs" || (key == "form" && !all)) continue;
    if (!all && usual.contains(key) && usual.at(key) == value) continue;
    title += fmt::format(", {} {}", key, plain_text(value));
  }
  return title;
}

size_t optimizer_place(const std::string& name) {
  const auto names = optimizer_names();
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

std::string optimizer_label(const std::string& name) {
  const auto place = optimizer_place(name);
  return place < optimizer_infos().size() ? optimizer_infos()[place].label : name;
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

/// By the optimizer, and the settings that are not as with most of its series.
void label_series(std::vector<Series>& series) {
  std::map<std::string, std::map<std::string, std::optional<json>>> usual;
  for (auto& one : series) {
    one.label = optimizer_label(one.optimizer);
    if (usual.count(one.optimizer) == 0) usual[one.optimizer] = usual_settings(series, one.optimizer);
    for (const auto& [key, most] : usual[one.optimizer]) {
      const auto value = one.settings.value(key, json());
      if (most == value) continue;
      one.label += value.is_null() ? fmt::format(", no {}", key) : fmt::format(", {} {}", key, plain_text(value));
    }
  }
  std::stable_sort(series.begin(), series.end(), [](const auto& a, const auto& b) {
    const auto place = [](const Series& s) { return optimizer_place(s.optimizer); };
    if (place(a) != place(b)) return place(a) < place(b);
    return a.optimizer != b.optimizer ? a.optimizer < b.optimizer : a.settings < b.settings;
  });
}

/// How far a run got: one that is over is further than one that is not.
std::pair<bool, size_t> progress_of(const FoundRun& run) {
  return {run.record.over(), run.record.epochs.size()};
}

void add_run(Task& task, const FoundRun& run, json settings, std::vector<std::string>& notices) {
  const auto optimizer = run.settings.at("opt").get<std::string>();
  const auto same = [&](const auto& s) { return s.optimizer == optimizer && s.settings == settings; };
  auto series = std::find_if(task.series.begin(), task.series.end(), same);
  if (series == task.series.end()) {
    Series fresh;
    fresh.optimizer = optimizer;
    fresh.settings = std::move(settings);
    series = task.series.insert(series, std::move(fresh));
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

void finish(Task& task, size_t points) {
  std::vector<RunGroup> groups;
  for (auto& series : task.series) {
    std::sort(series.runs.begin(), series.runs.end(), [](auto* a, auto* b) { return a->seed < b->seed; });
    RunGroup group{series.optimizer, series.label, std::max(series.planned, series.runs.size()), {}};
    for (const auto* run : series.runs) group.runs.push_back(&run->record);
    groups.push_back(std::move(group));
    series.curves = make_curves(series.runs, points);
  }
  const auto rows = summarise_groups(groups);
  for (size_t i = 0; i < rows.size(); ++i) task.series[i].summary = rows[i];
}

/// The tables of experiments, with the runs there are; `placed` are these. Of a table without any there is but a
/// notice.
std::vector<Task> experiment_tasks(Collection& collection, std::set<const FoundRun*>& placed) {
  std::map<std::filesystem::path, const FoundRun*> runs;
  for (const auto& run : collection.runs) runs.emplace(real_path(run.record.folder), &run);
  std::vector<Task> tasks;
  for (const auto& table : collection.experiments) {
    if (table.of_cost) continue;
    Task task;
    task.title = table.title;
    task.note = table.note;
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
      task.series.push_back(std::move(series));
    }
    if (absent > 0) {
      collection.notices.push_back(
          fmt::format("Missing: {} of the {} runs of: {}", absent, absent + present, table.title));
    }
    if (present > 0) tasks.push_back(std::move(task));
  }
  return tasks;
}

void name_tasks(std::vector<Task>& tasks) {
  std::map<std::string, int> times;
  for (auto& task : tasks) {
    if (!task.settings.is_null()) task.title = title_of(task.settings, false);
    ++times[task.title];
  }
  std::set<std::string> slugs;
  for (auto& task : tasks) {
    if (times[task.title] > 1 && !task.settings.is_null()) task.title = title_of(task.settings, true);
    const auto slug = slug_of(task.title, "task");
    task.slug = slug;
    for (int i = 2; !slugs.insert(task.slug).second; ++i) task.slug = fmt::format("{}-{}", slug, i);
  }
}

}  // namespace

std::string Task::ranking() const {
  std::vector<double> ours;
  std::vector<double> theirs;
  for (const auto& one : series) {
    if (!one.reference || one.summary.top1.count == 0) continue;
    ours.push_back(one.summary.top1.mean);
    theirs.push_back(one.reference->value);
  }
  const auto agreement = rank_agreement(ours, theirs);
  if (agreement.pairs == 0) return "";
  return fmt::format("Ranking of the means: {} (Kendall's tau {:.2f}).", agreement.words(), agreement.tau);
}

std::vector<Task> make_tasks(Collection& collection) {
  std::set<const FoundRun*> placed;
  auto tasks = experiment_tasks(collection, placed);
  for (const auto& run : collection.runs) {
    if (placed.count(&run) > 0) continue;
    auto parts = split(run.settings);
    const auto same = [&](const auto& task) { return task.settings == parts.task; };
    auto task = std::find_if(tasks.begin(), tasks.end(), same);
    if (task == tasks.end()) {
      Task fresh;
      fresh.settings = std::move(parts.task);
      task = tasks.insert(task, std::move(fresh));
    }
    add_run(*task, run, std::move(parts.series), collection.notices);
  }
  const auto references = by_folder(collection.references);
  size_t count = 0;
  for (auto& task : tasks) {
    count += task.series.size();
    if (task.settings.is_null()) continue;
    label_series(task.series);
    for (auto& series : task.series) series.reference = reference_of(series, references);
  }
  const auto points = std::clamp(kPointBudget / std::max<size_t>(count, 1), kFewestPoints, kMostPoints);
  for (auto& task : tasks) finish(task, points);
  name_tasks(tasks);
  style_series(tasks);
  return tasks;
}

}  // namespace sgdph::lab
