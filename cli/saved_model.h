#pragma once

#include <string>

#include "settings_options.h"

namespace sgdph::cli {

/// Weights a path means, and the settings of the network they belong to.
struct SavedModel {
  lab::settings::Settings settings;  ///< unresolved
  std::string source;                ///< the file the weights are from
  std::string state_dict;            ///< bytes
  int64_t epoch = 0;                 ///< that they are of, if they are the best by validation
};

// Which of a run's weights.
constexpr const char* kLast = "last";
constexpr const char* kBest = "best";  ///< by validation; of a run's folder only
constexpr const char* kEma = "ema";    ///< their moving average; of a run's folder or a checkpoint

/// Of a run's folder, a checkpoint or a state dict. Options on the command line override a checkpoint's settings as far
/// as they leave the network alone; with a state dict they are all there is. Weights that are not there are a
/// UserError.
SavedModel open_saved_model(const std::string& path, const SettingsOptions& given, const std::string& weights = kLast);

}  // namespace sgdph::cli
