#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/embedded.h"
#include "reproduce/paper.h"
#include "settings/recipe.h"

namespace sgdph::lab::reproduce {

/// What an experiment compares: accuracies of trained networks, or the cost of a training step.
enum class ExperimentKind { Accuracy, Cost };

struct AxisValue {
  std::string name;         ///< in files and options
  std::string label;        ///< in tables
  settings::Recipe recipe;  ///< what it sets, for all optimizers or for one
};

/// A direction of the grid.
struct Axis {
  std::string name;
  std::vector<AxisValue> values;
};

/// How large an experiment is done.
struct ScaleSettings {
  int64_t runs = 1;         ///< seeds
  double seconds = 60;      ///< of timing, for experiments of cost
  std::string why;          ///< the reason for its reductions
  settings::Recipe recipe;  ///< over the data set's recipe; for the desk, over the full scale too
  /// Settings in place of an axis value's: axis, value.
  std::map<std::string, std::map<std::string, settings::Layer>> instead;
};

/// A table or figure of the paper: a grid of cells, the settings of both scales, and the paper's figures.
struct Experiment {
  std::string name;
  std::string title;
  std::string paper;              ///< which table, figure and section
  std::vector<std::string> also;  ///< other names
  ExperimentKind kind = ExperimentKind::Accuracy;
  std::string ranked;  ///< the axis whose values are ranked; the others make groups
  std::vector<Axis> axes;
  ScaleSettings full;
  ScaleSettings desk;
  PaperFigures figures;

  std::vector<std::string> axis_names() const;
  /// A UserError with the nearest name if there is none.
  const Axis& axis(const std::string& axis_name) const;
};

/// Whether a setting says what a run is; else where and how it is done, or which of the runs of a cell it is.
bool is_identity(const settings::Field& field);

/// The axis of experiments of cost that is no setting: time or memory.
constexpr const char* kQuantityAxis = "quantity";

/// From TOML, the paper's figures in it as CSV; unknown keys and cells are errors. `where` names the file in messages.
Experiment parse_experiment(const std::string& name, const std::string& text, const std::string& where);

/// The files of experiments/, compiled in.
const std::vector<EmbeddedFile>& builtin_experiments();
/// The experiments that come with the lab.
std::vector<std::string> experiment_names();
/// By name, by another name ("table1"), or from a file (a path that ends in .toml).
Experiment find_experiment(const std::string& name);

}  // namespace sgdph::lab::reproduce
