#pragma once

#include <nlohmann/json.hpp>

#include <vector>

#include "settings/settings.h"

namespace sgdph::lab::train {

/// What decides data and network: runs that agree in it are prepared once.
nlohmann::json network_of(const settings::Settings& settings);

/// Opens the data and builds each network, and every optimizer, once, so that bad input shows before anything is
/// written.
void check_inputs(const std::vector<settings::Settings>& runs);

}  // namespace sgdph::lab::train
