#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

#include "data/registry.h"
#include "models/registry.h"
#include "settings/settings.h"

namespace sgdph {
class Scheduler;
}

namespace sgdph::lab {

/// Checks every name and fills in every default, so that the result says all a run depends on.
Settings resolve(Settings settings);

/// The network of resolved settings for these images, initialised by their seed. Refuses images, and a smallest batch
/// of training, that it cannot take.
std::shared_ptr<ImageModel> build_model(const Settings& settings, const Dataset& data, int64_t smallest_batch = 2);
/// Weights of a checkpoint or of a state dict that Python saved.
void load_weights(ImageModel& model, const std::string& file);

/// The learning rate over the run, counted in optimizer steps: step and multistep change it where an epoch begins,
/// warm-up and cosine at every step. The schedule proper begins after the warm-up, as in torchvision's scripts.
std::unique_ptr<Scheduler> make_schedule(
    torch::optim::Optimizer& optimizer, const Settings& settings, int64_t steps_per_epoch);

/// Settings that differ and may not, for a run that is to be continued: a UserError names the first. With `same_cost`
/// what decides time and memory may not differ either.
void check_same_run(const Settings& stored, const Settings& given, bool same_cost = false);

}  // namespace sgdph::lab
