#pragma once

#include <string>

#include "settings_options.h"

namespace sgdph::cli {

/// Weights a path means, and the settings of the network they belong to.
struct SavedModel {
  lab::settings::Settings settings;  ///< unresolved
  std::string source;                ///< the file the weights are from
  std::string state_dict;            ///< bytes
};

/// Of a run's folder, a checkpoint or a state dict. Options on the command line override a checkpoint's settings as far
/// as they leave the network alone; with a state dict they are all there is.
SavedModel open_saved_model(const std::string& path, const SettingsOptions& given);

}  // namespace sgdph::cli
