#pragma once

#include <cstdint>
#include <memory>

#include "settings/settings.h"

namespace torch::optim {
class Optimizer;
}
namespace sgdph {
class Scheduler;
}

namespace sgdph::lab::train {

/// Refuses settings of the schedule that do not go together.
void check_schedule(const settings::Settings& settings);

/// The learning rate over the run, counted in optimizer steps: step and multistep change it where an epoch begins,
/// warm-up and cosine at every step. The schedule proper begins after the warm-up, as in torchvision's scripts.
std::unique_ptr<Scheduler> make_schedule(
    torch::optim::Optimizer& optimizer, const settings::Settings& settings, int64_t steps_per_epoch);

}  // namespace sgdph::lab::train
