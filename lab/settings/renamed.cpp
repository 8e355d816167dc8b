#include "settings/renamed.h"

namespace sgdph::lab::settings {
namespace {

constexpr const char* kFirst = "beta1";
constexpr const char* kSecond = "beta2";
constexpr const char* kPair = "betas";
constexpr const char* kSingle = "beta";
constexpr const char* kOldWarmup = "warmup_steps";
constexpr const char* kWarmup = "warmup";

void rename(Layer& layer, const char* from, const char* to) {
  if (auto node = layer.extract(from)) {
    node.key() = to;
    layer.insert(std::move(node));
  }
}

}  // namespace

std::optional<std::string> renamed(const std::string& key) {
  if (key == kFirst || key == kSecond) return kPair;
  if (key == kOldWarmup) return kWarmup;
  return std::nullopt;
}

void rename_stored(Layer& layer) {
  const auto opt = layer.find("opt");
  const auto name = opt == layer.end() ? Settings().opt : plain_text(opt->second.value);
  const auto& entry = optimizers::optimizer_entry(name);
  if (entry.option(kWarmup) != nullptr) rename(layer, kOldWarmup, kWarmup);
  if (entry.option(kSingle) != nullptr) rename(layer, kFirst, kSingle);
  const auto* pair = entry.option(kPair);
  if (pair == nullptr || (layer.count(kFirst) == 0 && layer.count(kSecond) == 0)) return;
  auto values = optimizers::json_of(pair->value);
  std::string where;
  for (const auto& [place, key] : {std::pair(0, kFirst), std::pair(1, kSecond)}) {
    const auto given = layer.find(key);
    if (given == layer.end()) continue;
    values[static_cast<size_t>(place)] = given->second.value;
    where = given->second.where;
    layer.erase(given);
  }
  layer[kPair] = {values, where};
}

nlohmann::json with_first_names(nlohmann::json settings, const nlohmann::json& defaults) {
  const auto rename = [&](const char* from, const char* to) {
    if (!settings.contains(from)) return;
    settings[to] = settings[from];
    settings.erase(from);
  };
  rename(kWarmup, kOldWarmup);
  rename(kSingle, kFirst);
  if (settings.contains(kPair)) {
    const auto pair = settings[kPair];
    settings.erase(kPair);
    for (const auto& [place, key] : {std::pair(size_t{0}, kFirst), std::pair(size_t{1}, kSecond)}) {
      if (pair[place] != defaults.at(kPair)[place]) settings[key] = pair[place];
    }
  }
  return settings;
}

}  // namespace sgdph::lab::settings
