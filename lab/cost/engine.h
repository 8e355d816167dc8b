#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/models.h"
#include "settings/settings.h"

namespace sgdph::lab::cost {

/// Whose code runs when LibTorch differentiates a second time through its own layers.
enum class Operators { Untouched, Ours };

/// A way to do one training step.
struct Engine {
  std::string name;   ///< on the command line: sgd-ph-1/8
  std::string label;  ///< in tables
  std::string title;  ///< one line for lists
  models::Kernels kernels = models::Kernels::Fast;
  Operators operators = Operators::Ours;
  settings::Settings settings;  ///< of the optimizer, filled
  bool published = false;       ///< the product as in the published code
  double expected = 1;          ///< about how many plain steps a step takes, for estimates of time only
  bool by_default = false;      ///< measured when no engines are named

  bool is_baseline() const { return optimizers::optimizer_entry(settings.opt).info.traits.baseline; }
  bool has_blocks() const { return optimizers::optimizer_entry(settings.opt).info.traits.has_blocks; }
  int64_t refresh_every() const { return settings.option<int64_t>("refresh_every", 1); }
};

/// Every optimizer with the fast layers, then the other ways.
const std::vector<Engine>& engines();
std::vector<std::string> engine_names();
/// What engines on layers of this kind are compared with.
const Engine& baseline_engine(models::Kernels kernels);
/// A UserError with the nearest name if there is none.
const Engine& engine(const std::string& name);

/// Names with commas between, "all", or "default"; in the table's order, without repetition.
std::vector<Engine> engines_from_text(const std::string& text);

/// The engines with the SGDM they are compared with first: one for each kind of layers. A stock engine brings both, to
/// compare these two. In the table's order otherwise.
std::vector<Engine> with_references(const std::vector<Engine>& engines);

const char* to_string(models::Kernels kernels);

/// Makes LibTorch's own layers cheap to differentiate twice, or as they were. For the whole process.
void use_operators(Operators operators);

}  // namespace sgdph::lab::cost
