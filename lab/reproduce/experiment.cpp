#include "reproduce/experiment.h"

#include "base/error.h"
#include "base/files.h"
#include "base/names.h"
#include "optimizers/options.h"
#include "settings/toml_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace sgdph::lab::reproduce {
namespace {

constexpr int64_t kMostRuns = 1000;
constexpr double kMostSeconds = 1e6;

std::string text_of(const toml::node& node, const std::string& where) {
  const auto value = node.value<std::string>();
  if (!value) fail("{}: takes a text", settings::toml_place(where, node));
  return *value;
}

[[noreturn]] void unknown_key(
    const toml::node& node, const std::string& key, const std::string& where, const std::vector<std::string>& known) {
  fail(
      "{}: unknown key '{}'{}; there are {}", settings::toml_place(where, node), key, suggestion(key, known),
      fmt::join(known, ", "));
}

/// A value that stands for itself: it is set under the axis's name.
AxisValue plain_value(const std::string& axis, const toml::node& node, const std::string& where) {
  const auto value = settings::toml_value(node, where);
  AxisValue result;
  result.name = settings::plain_text(value);
  result.label = result.name;
  if (axis == "opt") result.label = optimizers::optimizer_entry(result.name).info.label;
  if (axis == kQuantityAxis) return result;
  result.recipe.run[axis] = {value, settings::toml_place(where, node)};
  settings::Settings scratch;
  settings::apply_layer(scratch, result.recipe.run);
  return result;
}

/// A value of several settings, with a name.
AxisValue named_value(const toml::node& node, const std::string& where) {
  const auto& table = settings::table_of(node, "axis.value", where);
  AxisValue result;
  if (const auto* name = table.get("name")) result.name = text_of(*name, where);
  if (result.name.empty()) fail("{}: a value needs a name", settings::toml_place(where, node));
  result.label = result.name;
  if (const auto* label = table.get("label")) result.label = text_of(*label, where);
  result.recipe.run = settings::layer_of(table, where, {"name", "label", "optimizer"});
  if (const auto* optimizers = table.get("optimizer"))
    result.recipe.optimizers = settings::optimizer_layers(*optimizers, where);
  return result;
}

Axis axis_of(const toml::node& node, const std::string& where) {
  const auto& table = settings::table_of(node, "axis", where);
  Axis axis;
  if (const auto* name = table.get("name")) axis.name = text_of(*name, where);
  if (axis.name.empty()) fail("{}: an axis needs a name", settings::toml_place(where, node));
  for (const auto& [key, part] : table) {
    if (key == "name") continue;
    if (key != "values" && key != "value") {
      unknown_key(part, std::string(key.str()), where, {"name", "values", "value"});
    }
    const auto* list = part.as_array();
    if (list == nullptr) fail("{}: {} must be a list", settings::toml_place(where, part), key.str());
    for (const auto& entry : *list) {
      axis.values.push_back(key == "values" ? plain_value(axis.name, entry, where) : named_value(entry, where));
      const auto& added = axis.values.back().name;
      const auto same = [&](const auto& value) { return value.name == added; };
      if (std::count_if(axis.values.begin(), axis.values.end(), same) > 1) {
        fail("{}: {} stands there twice", settings::toml_place(where, entry), added);
      }
    }
  }
  if (axis.values.empty()) fail("{}: axis {} has no values", settings::toml_place(where, node), axis.name);
  return axis;
}

ScaleSettings scale_of(
    const toml::node& node, const std::string& scale, const Experiment& experiment, const std::string& where) {
  ScaleSettings result;
  for (const auto& [key, part] : settings::table_of(node, scale, where)) {
    if (key == "runs") {
      result.runs = part.value_or(int64_t{0});
      if (result.runs < 1 || result.runs > kMostRuns)
        fail("{}: runs takes 1 to {}", settings::toml_place(where, part), kMostRuns);
    } else if (key == "seconds") {
      result.seconds = part.value_or(0.);
      if (!(result.seconds > 0 && result.seconds <= kMostSeconds)) {
        fail("{}: seconds takes a number above 0 and at most {}", settings::toml_place(where, part), kMostSeconds);
      }
    } else if (key == "why") {
      result.why = text_of(part, where);
    } else if (key == "run") {
      result.recipe.run = settings::layer_of(settings::table_of(part, scale + ".run", where), where);
    } else if (key == "optimizer") {
      result.recipe.optimizers = settings::optimizer_layers(part, where);
    } else if (key == "axis") {
      for (const auto& [axis, values] : settings::table_of(part, scale + ".axis", where)) {
        const auto& known = experiment.axis(std::string(axis.str()));
        for (const auto& [value, settings] : settings::table_of(values, scale + ".axis", where)) {
          const std::string name(value.str());
          check_name(
              fmt::format("{} ({})", known.name, settings::toml_place(where, settings)), name, names_of(known.values));
          result.instead[known.name][name] = settings::layer_of(settings::table_of(settings, name, where), where);
        }
      }
    } else {
      unknown_key(part, std::string(key.str()), where, {"runs", "seconds", "why", "run", "optimizer", "axis"});
    }
  }
  return result;
}

/// What an axis varies the desk may not set for all: the cells would be the same. [desk.axis] is for that.
void check_desk(const Experiment& experiment) {
  std::vector<const settings::Layer*> layers{&experiment.desk.recipe.run};
  for (const auto& [optimizer, layer] : experiment.desk.recipe.optimizers) layers.push_back(&layer);
  for (const auto& axis : experiment.axes) {
    for (const auto& value : axis.values) {
      std::vector<const settings::Layer*> varied{&value.recipe.run};
      for (const auto& [optimizer, layer] : value.recipe.optimizers) varied.push_back(&layer);
      for (const auto* keys : varied) {
        for (const auto& [key, given] : *keys) {
          for (const auto* layer : layers) {
            const auto found = layer->find(key);
            if (found == layer->end()) continue;
            fail(
                "{}: {} is varied by the axis {}; say in [desk.axis.{}] what stands for its values",
                found->second.where, key, axis.name, axis.name);
          }
        }
      }
    }
  }
}

/// An axis varies what a run is: cells that differ in how it is done would show one run as several.
void check_axes(const Experiment& experiment, const std::string& where) {
  settings::Settings known;
  const auto fields = settings::fields_of(known);
  std::set<std::string> names;
  for (const auto& axis : experiment.axes) {
    if (!names.insert(axis.name).second) fail("{}: axis {} stands there twice", where, axis.name);
    if (axis.name == kQuantityAxis && experiment.kind != ExperimentKind::Cost) {
      fail("{}: axis {} is for experiments of kind \"cost\"", where, axis.name);
    }
    for (const auto& value : axis.values) {
      for (const auto& [key, given] : value.recipe.run) {
        const auto* field = settings::find_field(fields, key);
        if (field == nullptr || is_identity(*field)) continue;
        fail("{}: {} cannot be varied by an axis: cells that differ in it are the same run", given.where, key);
      }
    }
  }
}

/// A measurement of cost is of one network, for time and memory of several optimizers.
void check_cost_axes(const Experiment& experiment, const std::string& where) {
  if (experiment.kind != ExperimentKind::Cost) return;
  for (const auto& axis : experiment.axes) {
    if (axis.name != kQuantityAxis && axis.name != "opt") {
      fail("{}: axis {}: an experiment of cost has the axes {} and opt", where, axis.name, kQuantityAxis);
    }
    if (axis.name == "opt") continue;
    for (const auto& value : axis.values) {
      check_name(fmt::format("{} ({})", kQuantityAxis, where), value.name, {"time", "memory"});
    }
  }
}

/// The paper's figures: [published] with `figures`, CSV in a text of several lines.
PaperFigures published_figures(const toml::node& node, const std::vector<std::string>& axes, const std::string& where) {
  PaperFigures figures;
  for (const auto& [key, value] : settings::table_of(node, "published", where)) {
    if (key != "figures") unknown_key(value, std::string(key.str()), where, {"figures"});
    // A text of several lines begins on the line after its quotes.
    figures = parse_paper_figures(text_of(value, where), axes, where, value.source().begin.line);
  }
  return figures;
}

void check_figures(const Experiment& experiment, const std::string& where) {
  for (const auto& [cell, figure] : experiment.figures) {
    for (size_t i = 0; i < cell.size(); ++i) {
      const auto& axis = experiment.axes[i];
      check_name(fmt::format("{} (the paper's figures of {})", axis.name, where), cell[i], names_of(axis.values));
    }
  }
}

}  // namespace

bool is_identity(const settings::Field& field) {
  return field.identity;
}

std::vector<std::string> Experiment::axis_names() const {
  return names_of(axes);
}

const Axis& Experiment::axis(const std::string& axis_name) const {
  return find_named(axes, fmt::format("axis of {}", name), axis_name);
}

Experiment parse_experiment(const std::string& name, const std::string& text, const std::string& where) {
  const auto root = settings::parse_toml(text, where);
  Experiment experiment;
  experiment.name = name;
  for (const auto& [key, node] : root) {
    if (key == "title") {
      experiment.title = text_of(node, where);
    } else if (key == "paper") {
      experiment.paper = text_of(node, where);
    } else if (key == "ranked") {
      experiment.ranked = text_of(node, where);
    } else if (key == "also") {
      const auto* list = node.as_array();
      if (list == nullptr) fail("{}: also takes a list of names", settings::toml_place(where, node));
      for (const auto& word : *list) experiment.also.push_back(text_of(word, where));
    } else if (key == "kind") {
      const auto kind = text_of(node, where);
      check_name(fmt::format("kind ({})", settings::toml_place(where, node)), kind, {"accuracy", "cost"});
      experiment.kind = kind == "cost" ? ExperimentKind::Cost : ExperimentKind::Accuracy;
    } else if (key == "axis") {
      const auto* list = node.as_array();
      if (list == nullptr) fail("{}: axes stand in [[axis]]", settings::toml_place(where, node));
      for (const auto& entry : *list) experiment.axes.push_back(axis_of(entry, where));
    } else if (key != "full" && key != "desk" && key != "published") {
      unknown_key(
          node, std::string(key.str()), where,
          {"title", "paper", "also", "kind", "ranked", "axis", "full", "desk", "published"});
    }
  }
  if (experiment.axes.empty()) fail("{}: an experiment needs an [[axis]]", where);
  if (experiment.title.empty()) experiment.title = name;
  if (experiment.ranked.empty()) experiment.ranked = experiment.axes.back().name;
  experiment.axis(experiment.ranked);
  if (const auto* node = root.get("full")) experiment.full = scale_of(*node, "full", experiment, where);
  if (const auto* node = root.get("desk")) experiment.desk = scale_of(*node, "desk", experiment, where);
  check_axes(experiment, where);
  check_desk(experiment);
  check_cost_axes(experiment, where);
  if (const auto* node = root.get("published")) {
    experiment.figures = published_figures(*node, experiment.axis_names(), where);
    check_figures(experiment, where);
  }
  return experiment;
}

std::vector<std::string> experiment_names() {
  return names_of(builtin_experiments());
}

Experiment find_experiment(const std::string& name) {
  const std::filesystem::path path(name);
  if (path.extension() == ".toml") {
    return parse_experiment(path.stem().string(), read_named_file(path), name);
  }
  auto known = experiment_names();
  for (const auto& builtin : builtin_experiments()) {
    auto experiment = parse_experiment(builtin.name, std::string(builtin.text), "experiment " + builtin.name);
    const auto& also = experiment.also;
    if (name == builtin.name || std::find(also.begin(), also.end(), name) != also.end()) return experiment;
    known.insert(known.end(), also.begin(), also.end());
  }
  refuse_name("experiment", name, known);
}

}  // namespace sgdph::lab::reproduce
