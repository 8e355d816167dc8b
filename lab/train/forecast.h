#pragma once

#include <cstdint>
#include <vector>

#include "settings/settings.h"

namespace sgdph::lab::train {

/// Opens the data and builds each network, and every optimizer, once, so that bad input shows before anything is
/// written.
void check_inputs(const std::vector<settings::Settings>& runs);

/// A run that is to be trained for so many epochs more.
struct TrainingAhead {
  settings::Settings settings;  ///< resolved
  int64_t epochs = 0;
};

/// About how many seconds each will take, from a few timed steps and a timed test of each distinct workload (network,
/// images, optimizer). Opens all data and builds everything on the way, so that bad input is a UserError. Ends early,
/// with zeros, when interrupted.
std::vector<double> forecast_seconds(const std::vector<TrainingAhead>& runs);

}  // namespace sgdph::lab::train
