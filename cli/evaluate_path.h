#pragma once

#include <string>

#include "settings_options.h"

namespace sgdph::cli {

struct EvaluateOptions {
  bool json = false;
  std::string weights = "last";
  std::string export_to;  ///< also write the weights there, for Python
};

/// Whether a setting means something to an evaluation.
bool evaluation_uses(const lab::settings::Field& field);

/// Evaluates a run's folder, a checkpoint or a state dict and prints the figures; the exit code. Options on the command
/// line override the checkpoint's settings as far as they leave the network alone.
int evaluate_path(const std::string& path, const SettingsOptions& given, const EvaluateOptions& options = {});

}  // namespace sgdph::cli
