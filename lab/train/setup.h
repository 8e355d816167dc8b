#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

#include "config/settings.h"
#include "data/registry.h"
#include "models/registry.h"

namespace sgdph {
class Scheduler;
}

namespace sgdph::lab {

/// Checks every name and fills in every default, so that the result says all a run depends on.
Settings resolve(Settings settings);

/// The network of resolved settings for these images, initialised by their seed or from `init`.
std::shared_ptr<ImageModel> build_model(const Settings& settings, const Dataset& data);
/// Weights of a checkpoint or of a state dict that Python saved.
void load_weights(ImageModel& model, const std::string& file);

/// The learning rate over the run, counted in optimizer steps: step and multistep change it where an epoch begins,
/// warm-up and cosine at every step. The schedule proper begins after the warm-up, as in torchvision's scripts.
std::unique_ptr<Scheduler> make_schedule(
    torch::optim::Optimizer& optimizer, const Settings& settings, int64_t steps_per_epoch);

/// Settings that differ and may not, for a run that is to be continued: a UserError names the first.
void check_same_run(const Settings& stored, const Settings& given);

}  // namespace sgdph::lab
