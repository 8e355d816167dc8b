#include "optimizers/options.h"

#include "base/error.h"
#include "base/names.h"
#include "base/text.h"

#include <algorithm>
#include <stdexcept>

namespace sgdph::lab::optimizers {
namespace {

/// Probes are drawn by the run's seed.
constexpr const char* kSeed = "seed";

std::vector<OptionInfo> lab_options(const OptimizerTraits& traits) {
  std::vector<OptionInfo> options;
  const auto add = [&](const char* name, const char* help, OptionValue value, std::vector<std::string> choices = {}) {
    OptionInfo option;
    option.name = name;
    option.help = help;
    option.value = std::move(value);
    option.choices = std::move(choices);
    options.push_back(std::move(option));
  };
  if (traits.measures_curvature) {
    add(kCurvatureBatch, "part of the batch the curvature is measured from, such as 1/8", std::string(kWholeBatch));
  }
  if (traits.has_blocks) {
    add(kCurvatureControl,
        "for studies: in place of a block's curvature its mean over the block, or one multiplier for all blocks",
        std::string(kNoControl), {kNoControl, kBlockMean, kConstantMultiplier});
    add(kBlockMultiplier, "of every block's step, in place of lr_so / curvature, if curvature_control is constant",
        kPlainMultiplier);
    options.back().bound = above(0);
    add(kBlocks, "blocks by layer type, or every 1-D parameter as published", std::string(kBlocksByModule),
        {kBlocksByModule, "published"});
  }
  return options;
}

OptimizerEntry entry_of(const OptimizerInfo& info) {
  OptimizerEntry entry{info, {}};
  for (const auto& option : info.options) {
    if (option.name != kSeed) entry.options.push_back(option);
  }
  for (auto& option : lab_options(info.traits)) entry.options.push_back(std::move(option));
  return entry;
}

OptionValue value_from(const nlohmann::json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_array()) return json.get<std::vector<double>>();
  return json.get<std::string>();
}

OptionValues library_part(const OptimizerInfo& info, const OptimizerValues& values) {
  OptionValues part;
  for (const auto& [name, value] : values) {
    if (info.option(name) != nullptr) part.emplace(name, value_from(value));
  }
  return part;
}

void check_lab_options(const OptimizerValues& values) {
  if (const auto part = values.find(kCurvatureBatch); part != values.end()) {
    batch_part_from_text(part->second.get<std::string>());
  }
  const auto control = values.find(kCurvatureControl);
  if (control == values.end() || control->second == kConstantMultiplier) return;
  if (values.at(kBlockMultiplier) != kPlainMultiplier) {
    fail(
        "--block-multiplier: belongs to --curvature-control {}, not {}", kConstantMultiplier,
        control->second.get<std::string>());
  }
}

}  // namespace

const OptionInfo* OptimizerEntry::option(const std::string& name) const {
  const auto found = std::find_if(options.begin(), options.end(), [&](const auto& one) { return one.name == name; });
  return found == options.end() ? nullptr : &*found;
}

const std::vector<OptimizerEntry>& optimizer_entries() {
  static const auto all = [] {
    std::vector<OptimizerEntry> entries;
    for (const auto& info : sgdph::optimizers()) entries.push_back(entry_of(info));
    return entries;
  }();
  return all;
}

std::vector<std::string> optimizer_names() {
  return names_of(sgdph::optimizers());
}

const OptimizerEntry& optimizer_entry(const std::string& name) {
  check_name("optimizer", name, optimizer_names());
  const auto& all = optimizer_entries();
  return *std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.info.name == name; });
}

std::string optimizer_label(const std::string& name) {
  for (const auto& info : sgdph::optimizers()) {
    if (info.name == name) return info.label;
  }
  return name;
}

const OptimizerEntry& baseline_optimizer() {
  const auto& all = optimizer_entries();
  return *std::find_if(all.begin(), all.end(), [](const auto& entry) { return entry.info.traits.baseline; });
}

OptimizerValues resolve_optimizer(const std::string& name, const OptimizerValues& given) {
  const auto& entry = optimizer_entry(name);
  OptimizerValues values;
  try {
    for (const auto& [key, value] : resolve_options(name, library_part(entry.info, given))) {
      if (key != kSeed) values.emplace(key, json_of(value));
    }
  } catch (const std::invalid_argument& error) {
    throw UserError(error.what());
  }
  for (const auto& option : entry.options) {
    if (entry.info.option(option.name) != nullptr) continue;
    const auto found = given.find(option.name);
    values.emplace(option.name, found == given.end() ? json_of(option.value) : found->second);
  }
  check_lab_options(values);
  return values;
}

OptionValues library_values(const std::string& name, const OptimizerValues& resolved, int64_t seed) {
  const auto& info = optimizer_entry(name).info;
  auto values = library_part(info, resolved);
  if (info.option(kSeed) != nullptr) values[kSeed] = seed;
  return values;
}

nlohmann::json json_of(const OptionValue& value) {
  return std::visit([](const auto& content) { return nlohmann::json(content); }, value);
}

double batch_part_from_text(const std::string& text) {
  const auto slash = text.find('/');
  const auto above = number_from<double>(text.substr(0, slash));
  const auto below = slash == std::string::npos ? 1. : number_from<double>(text.substr(slash + 1));
  const auto part = above && below ? *above / *below : 0;
  if (!(part > 0 && part <= 1)) fail("--curvature-batch: '{}' is not a part of a batch; use 1, 1/8 or the like", text);
  return part;
}

}  // namespace sgdph::lab::optimizers
