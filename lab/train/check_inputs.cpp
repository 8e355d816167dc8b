#include "train/check_inputs.h"

#include "train/run_parts.h"

#include <optional>

namespace sgdph::lab::train {

nlohmann::json network_of(const settings::Settings& settings) {
  auto copy = settings;
  auto json = nlohmann::json::object();
  for (const auto& field : settings::fields_of(copy)) {
    if (field.network) json[field.key] = field.get();
  }
  return json;
}

void check_inputs(const std::vector<settings::Settings>& runs) {
  std::optional<RunParts> parts;
  nlohmann::json network;
  for (const auto& settings : runs) {
    auto wanted = network_of(settings);
    if (!parts || wanted != network) parts = prepare_run(settings);
    network = std::move(wanted);
    optimizers::make_optimizer(*parts->model, settings.opt, settings.optimizer, settings.seed);
  }
}

}  // namespace sgdph::lab::train
