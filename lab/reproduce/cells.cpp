#include "reproduce/cells.h"

#include "base/error.h"
#include "base/names.h"
#include "settings/renamed.h"
#include "train/resolve.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace sgdph::lab::reproduce {
namespace {

bool is_wanted(const Axis& axis, const AxisValue& value, const Selection& selection) {
  const auto found = selection.only.find(axis.name);
  return found == selection.only.end() ||
         std::find(found->second.begin(), found->second.end(), value.name) != found->second.end();
}

/// The settings of a cell before defaults are filled in, later sources winning: the recipe of the data set, the
/// experiment, the values of the axes, the desk's reductions, the options.
settings::Settings settings_of_cell(
    const Experiment& experiment, const std::vector<const AxisValue*>& values, const Selection& selection) {
  settings::Recipe grid;
  settings::Recipe instead;
  for (size_t i = 0; i < values.size(); ++i) {
    for (const auto& [key, given] : values[i]->recipe.run) grid.run[key] = given;
    for (const auto& [name, layer] : values[i]->recipe.optimizers) {
      for (const auto& [key, given] : layer) grid.optimizers[name][key] = given;
    }
    const auto axis = experiment.desk.instead.find(experiment.axes[i].name);
    if (axis == experiment.desk.instead.end()) continue;
    const auto value = axis->second.find(values[i]->name);
    if (value == axis->second.end()) continue;
    for (const auto& [key, given] : value->second) instead.run[key] = given;
  }
  settings::Sources sources;
  sources.recipes = {experiment.full.recipe, grid};
  // The data set decides the recipe at full scale: the desk keeps its rates and decays even on other images.
  std::string dataset;
  for (const auto& recipe : sources.recipes) {
    if (const auto found = recipe.run.find("dataset"); found != recipe.run.end())
      dataset = found->second.value.get<std::string>();
  }
  const auto known = settings::recipe_names();
  if (std::find(known.begin(), known.end(), dataset) != known.end()) {
    sources.recipes.insert(sources.recipes.begin(), settings::named_recipe(dataset));
  }
  if (selection.scale == Scale::Desk) {
    sources.recipes.push_back(experiment.desk.recipe);
    sources.recipes.push_back(instead);
  }
  sources.options = selection.options;
  const auto path = selection.data_paths.find(settings::combine(sources).dataset);
  if (path != selection.data_paths.end()) sources.options["data_path"] = {path->second, "--data-path"};
  return train::resolve(settings::combine(sources));
}

/// Eight hexadecimal digits (FNV-1a) of the settings that are not the defaults of data set and optimizer. Those added
/// to the lab later do not change it.
std::string short_checksum(const settings::Settings& settings) {
  auto copy = settings;
  settings::Settings plain;
  plain.dataset = settings.dataset;
  plain.opt = settings.opt;
  plain = train::resolve(plain);
  const auto fields = settings::fields_of(copy);
  const auto defaults = settings::fields_of(plain);
  auto json = nlohmann::json::object();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (is_identity(fields[i]) && fields[i].get() != defaults[i].get()) json[fields[i].key] = fields[i].get();
  }
  uint32_t sum = 2166136261U;
  for (const auto letter : settings::with_first_names(json, settings::to_json(plain)).dump())
    sum = (sum ^ static_cast<uint8_t>(letter)) * 16777619U;
  return fmt::format("{:08x}", sum);
}

}  // namespace

const char* to_string(Scale scale) {
  return scale == Scale::Full ? "full" : "desk";
}

void check_selection(const Experiment& experiment, const Selection& selection) {
  for (const auto& [axis_name, values] : selection.only) {
    const auto& axis = experiment.axis(axis_name);
    for (const auto& value : values)
      find_named(axis.values, fmt::format("{} of {}", axis_name, experiment.name), value);
  }
}

std::vector<Cell> cells_of(const Experiment& experiment, const Selection& selection) {
  check_selection(experiment, selection);
  std::vector<std::vector<const AxisValue*>> grid{{}};
  for (const auto& axis : experiment.axes) {
    std::vector<std::vector<const AxisValue*>> longer;
    for (const auto& begun : grid) {
      for (const auto& value : axis.values) {
        if (!is_wanted(axis, value, selection)) continue;
        longer.push_back(begun);
        longer.back().push_back(&value);
      }
    }
    grid = std::move(longer);
  }
  std::vector<Cell> cells;
  for (const auto& values : grid) {
    Cell cell;
    std::vector<std::string> labels;
    for (const auto* value : values) {
      cell.values.push_back(value->name);
      labels.push_back(value->label);
    }
    cell.label = fmt::format("{}", fmt::join(labels, ", "));
    cell.settings = settings_of_cell(experiment, values, selection);
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::vector<int64_t> seeds_of(const Experiment& experiment, const Selection& selection) {
  if (!selection.seeds.empty()) return selection.seeds;
  std::vector<int64_t> seeds;
  const auto& scale = selection.scale == Scale::Full ? experiment.full : experiment.desk;
  for (int64_t seed = 1; seed <= scale.runs; ++seed) seeds.push_back(seed);
  return seeds;
}

study::StudyRun run_of(const Cell& cell, int64_t seed, const std::filesystem::path& output_dir) {
  const auto& s = cell.settings;
  study::StudyRun run{fmt::format("{}, seed {}", cell.label, seed), {}, s};
  run.settings.seed = seed;
  run.folder = output_dir / fmt::format("{}-{}-{}-{}-seed{}", s.dataset, s.model, s.opt, short_checksum(s), seed);
  return run;
}

std::vector<std::string> reductions(const Experiment& experiment, const Selection& selection) {
  const auto runs = seeds_of(experiment, selection).size();
  return reductions(experiment, selection, runs, runs);
}

std::vector<std::string> reductions(
    const Experiment& experiment, const Selection& selection, size_t fewest_runs, size_t most_runs) {
  if (selection.scale == Scale::Full) return {};
  auto whole = selection;
  whole.scale = Scale::Full;
  auto full = cells_of(experiment, whole);
  auto desk = cells_of(experiment, selection);
  std::vector<std::string> keys;
  std::map<std::string, std::vector<std::string>> changes;
  for (size_t i = 0; i < full.size(); ++i) {
    const auto before = settings::fields_of(full[i].settings);
    const auto after = settings::fields_of(desk[i].settings);
    for (size_t k = 0; k < before.size(); ++k) {
      const auto& key = before[k].key;
      if (!is_identity(before[k]) || before[k].get() == after[k].get()) continue;
      auto change = fmt::format("{} -> {}", before[k].shown(before[k].get()), before[k].shown(after[k].get()));
      auto& known = changes[key];
      if (known.empty()) keys.push_back(key);
      if (std::find(known.begin(), known.end(), change) == known.end()) known.push_back(std::move(change));
    }
  }
  std::vector<std::string> lines;
  const bool trained = experiment.kind == ExperimentKind::Accuracy;
  const auto all_runs = static_cast<size_t>(experiment.full.runs);
  if (trained && fewest_runs != most_runs) {
    lines.push_back(fmt::format("runs {} -> {} to {}", all_runs, fewest_runs, most_runs));
  } else if (trained && most_runs != all_runs) {
    lines.push_back(fmt::format("runs {} -> {}", all_runs, most_runs));
  }
  if (!trained && experiment.full.seconds != experiment.desk.seconds) {
    lines.push_back(fmt::format("seconds of timing {} -> {}", experiment.full.seconds, experiment.desk.seconds));
  }
  for (const auto& key : keys) lines.push_back(fmt::format("{} {}", key, fmt::join(changes[key], ", ")));
  return lines;
}

}  // namespace sgdph::lab::reproduce
