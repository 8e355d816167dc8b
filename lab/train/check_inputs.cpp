#include "train/check_inputs.h"

#include "train/run_parts.h"

#include <optional>

namespace sgdph::lab {

nlohmann::json network_of(const Settings& settings) {
  auto copy = settings;
  auto json = nlohmann::json::object();
  for (const auto& field : fields_of(copy)) {
    if (field.network) json[field.key] = field.get();
  }
  return json;
}

void check_inputs(const std::vector<Settings>& runs) {
  std::optional<RunParts> parts;
  nlohmann::json network;
  for (const auto& settings : runs) {
    auto wanted = network_of(settings);
    if (!parts || wanted != network) parts = prepare_run(settings);
    network = std::move(wanted);
    make_optimizer(*parts->model, settings.opt, settings.optimizer, settings.seed);
  }
}

}  // namespace sgdph::lab
