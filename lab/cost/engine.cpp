#include "cost/engine.h"

#include "base/error.h"
#include "base/names.h"
#include "base/text.h"
#include "optimizers/options.h"
#include "optimizers/training_optimizer.h"

#include <sgdph/fast_operators.h>

#include <algorithm>

namespace sgdph::lab::cost {
namespace {

constexpr const char* kStockSuffix = "-stock";
constexpr const char* kShiftGuard = "shift_guard";

/// Settings whose values do not matter for the cost, but must not let training on noise diverge.
settings::Settings settings_of(const optimizers::OptimizerEntry& entry) {
  settings::Settings settings;
  settings.opt = entry.info.name;
  settings.optimizer = {{"lr", 1e-4}, {"weight_decay", 5e-4}};
  // The guard's extra product happens once for each block in a whole training.
  if (entry.option(kShiftGuard) != nullptr) settings.optimizer[kShiftGuard] = false;
  settings.optimizer = optimizers::resolve_optimizer(settings.opt, settings.optimizer);
  return settings;
}

Engine optimizer_engine(const optimizers::OptimizerEntry& entry) {
  Engine engine;
  engine.name = entry.info.name;
  engine.label = entry.info.label;
  engine.title = fmt::format("{} ({})", entry.info.title, entry.info.source);
  engine.settings = settings_of(entry);
  engine.expected = entry.info.traits.expected_cost;
  engine.by_default = entry.info.traits.baseline || entry.info.traits.has_blocks;
  return engine;
}

/// The optimizer in another way.
Engine variant(
    const optimizers::OptimizerEntry& entry, const std::string& name, const std::string& way, const std::string& title,
    double expected) {
  auto engine = optimizer_engine(entry);
  engine.name = name;
  engine.label = fmt::format("{}, {}", entry.info.label, way);
  engine.title = title;
  engine.expected = expected;
  return engine;
}

/// An optimizer with blocks in the ways that change what the curvature costs.
std::vector<Engine> block_variants(const optimizers::OptimizerEntry& entry) {
  const auto& [name, label] = std::pair(entry.info.name, entry.info.label);
  auto eighth =
      variant(entry, name + "-1/8", "1/8", fmt::format("{} with curvature from an eighth of the batch", label), 1.15);
  eighth.settings.optimizer[optimizers::kCurvatureBatch] = "1/8";
  auto seldom = variant(
      entry, name + "-1/8-every-4", "1/8 every 4", "the same on every fourth step only (refresh_every 4)", 1.05);
  seldom.settings.optimizer[optimizers::kCurvatureBatch] = "1/8";
  seldom.settings.optimizer["refresh_every"] = 4;
  return {eighth, seldom};
}

std::vector<Engine> stock_variants(const optimizers::OptimizerEntry& entry) {
  const auto& [name, label] = std::pair(entry.info.name, entry.info.label);
  auto stock = variant(
      entry, name + kStockSuffix, "stock",
      fmt::format("{} on LibTorch's own layers, with sgdph::install_fast_operators()", label), 1.5);
  stock.kernels = models::Kernels::Stock;
  auto published = variant(
      entry, "published", "published way",
      "as in the published code: untouched LibTorch, the second product over all later parameters", 6);
  published.kernels = models::Kernels::Stock;
  published.operators = Operators::Untouched;
  published.published = true;
  return {stock, published};
}

Engine stock_baseline() {
  const auto& entry = optimizers::baseline_optimizer();
  auto engine = variant(
      entry, entry.info.name + kStockSuffix, "stock",
      fmt::format("{} on LibTorch's own layers: what the stock engines are compared with", entry.info.label), 1);
  engine.kernels = models::Kernels::Stock;
  engine.by_default = false;
  return engine;
}

std::vector<Engine> make_engines() {
  std::vector<Engine> all;
  for (const auto& entry : optimizers::optimizer_entries()) all.push_back(optimizer_engine(entry));
  const auto& own = optimizers::optimizer_entry(optimizers::kOwnOptimizer);
  for (const auto& engine : block_variants(own)) all.push_back(engine);
  all.push_back(stock_baseline());
  for (const auto& engine : stock_variants(own)) all.push_back(engine);
  return all;
}

}  // namespace

const std::vector<Engine>& engines() {
  static const auto all = make_engines();
  return all;
}

std::vector<std::string> engine_names() {
  return names_of(engines());
}

const Engine& engine(const std::string& name) {
  return find_named(engines(), "engine", name);
}

std::vector<Engine> engines_from_text(const std::string& text) {
  std::vector<std::string> wanted;
  if (text != "all" && text != "default") {
    wanted = words_between_commas(text);
    for (const auto& name : wanted) engine(name);
    check_distinct("--engines", wanted);
  }
  std::vector<Engine> chosen;
  for (const auto& engine : engines()) {
    const bool named = std::find(wanted.begin(), wanted.end(), engine.name) != wanted.end();
    if (named || text == "all" || (text == "default" && engine.by_default)) chosen.push_back(engine);
  }
  return chosen;
}

std::vector<Engine> with_references(const std::vector<Engine>& chosen) {
  const auto any = [&](models::Kernels kernels) {
    return std::any_of(chosen.begin(), chosen.end(), [&](const Engine& engine) { return engine.kernels == kernels; });
  };
  std::vector<Engine> all{baseline_engine(models::Kernels::Fast)};
  if (any(models::Kernels::Stock)) all.push_back(baseline_engine(models::Kernels::Stock));
  for (const auto& engine : chosen) {
    if (!engine.is_baseline()) all.push_back(engine);
  }
  return all;
}

const Engine& baseline_engine(models::Kernels kernels) {
  const auto& name = optimizers::baseline_optimizer().info.name;
  return engine(kernels == models::Kernels::Fast ? name : name + kStockSuffix);
}

const char* to_string(models::Kernels kernels) {
  return kernels == models::Kernels::Fast ? "fast" : "stock";
}

void use_operators(Operators operators) {
  if (operators == Operators::Ours) {
    install_fast_operators();
  } else {
    remove_fast_operators();
  }
}

}  // namespace sgdph::lab::cost
