#include "cost/engine.h"

#include "base/error.h"
#include "base/names.h"
#include "base/text.h"
#include "settings/optimizer_table.h"
#include "train/optimizers.h"

#include <sgdph/fast_operators.h>

#include <algorithm>

namespace sgdph::lab {
namespace {

/// Settings whose values do not matter for the cost, but must not let training on noise diverge.
Settings settings_of(const std::string& optimizer) {
  Settings settings;
  settings.opt = optimizer;
  settings.lr = 1e-4;
  settings.weight_decay = 5e-4;
  fill_optimizer_defaults(settings);
  // The guard's extra product happens once for each block in a whole training.
  if (settings.shift_guard) settings.shift_guard = false;
  return settings;
}

Engine optimizer_engine(const OptimizerInfo& info) {
  Engine engine;
  engine.name = info.name;
  engine.label = info.label;
  engine.title = info.title;
  engine.settings = settings_of(info.name);
  engine.expected = info.name == "adahessian" ? 6 : info.name == "sgd-ph" ? 1.4 : 1;
  engine.by_default = engine.is_reference() || info.name == "sgd-ph";
  return engine;
}

/// SGD-PH in another way.
Engine variant(const char* name, const char* label, const char* title, double expected) {
  auto engine = optimizer_engine(optimizer_info("sgd-ph"));
  engine.name = name;
  engine.label = label;
  engine.title = title;
  engine.expected = expected;
  engine.by_default = true;
  return engine;
}

Engine stock_sgdm() {
  auto engine = optimizer_engine(optimizer_info("sgdm"));
  engine.name = "sgdm-stock";
  engine.label = "SGDM, stock";
  engine.title = "SGDM on LibTorch's own layers: what the stock engines are compared with";
  engine.kernels = Kernels::Stock;
  engine.by_default = false;
  return engine;
}

std::vector<Engine> make_engines() {
  std::vector<Engine> all;
  for (const auto& info : optimizer_infos()) all.push_back(optimizer_engine(info));
  auto eighth = variant("sgd-ph-1/8", "SGD-PH, 1/8", "SGD-PH with curvature from an eighth of the batch", 1.15);
  eighth.settings.curvature_batch = "1/8";
  all.push_back(eighth);
  auto seldom = variant(
      "sgd-ph-1/8-every-4", "SGD-PH, 1/8 every 4", "the same on every fourth step only (refresh_every 4)", 1.05);
  seldom.settings.curvature_batch = "1/8";
  seldom.settings.refresh_every = 4;
  all.push_back(seldom);
  all.push_back(stock_sgdm());
  auto stock = variant(
      "sgd-ph-stock", "SGD-PH, stock", "SGD-PH on LibTorch's own layers, with sgdph::install_fast_operators()", 1.5);
  stock.kernels = Kernels::Stock;
  all.push_back(stock);
  auto published = variant(
      "published", "SGD-PH, published way",
      "as in the published code: untouched LibTorch, the second product over all later parameters", 6);
  published.kernels = Kernels::Stock;
  published.operators = Operators::Untouched;
  published.published = true;
  all.push_back(published);
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
  const auto any = [&](Kernels kernels) {
    return std::any_of(chosen.begin(), chosen.end(), [&](const Engine& engine) { return engine.kernels == kernels; });
  };
  std::vector<Engine> all{engine("sgdm")};
  if (any(Kernels::Stock)) all.push_back(engine("sgdm-stock"));
  for (const auto& engine : chosen) {
    if (!engine.is_reference()) all.push_back(engine);
  }
  return all;
}

const char* to_string(Kernels kernels) {
  return kernels == Kernels::Fast ? "fast" : "stock";
}

void use_operators(Operators operators) {
  if (operators == Operators::Ours) {
    install_fast_operators();
  } else {
    remove_fast_operators();
  }
}

}  // namespace sgdph::lab
