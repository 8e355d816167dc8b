#pragma once

#include <memory>

#include "data/datasets.h"
#include "data/loader.h"
#include "models/image_model.h"
#include "optimizers/training_optimizer.h"
#include "settings/settings.h"

namespace sgdph::lab {

/// How training images are loaded.
LoaderOptions train_loader_options(const Settings& settings);

/// What a run needs, made and checked before anything is written.
struct RunParts {
  Settings settings;  ///< resolved
  DatasetPair data;
  std::shared_ptr<ImageModel> model;
  std::unique_ptr<TrainingOptimizer> optimizer;
};
/// `continued`: the weights will come from a checkpoint, so `init` is not read.
RunParts prepare_run(const Settings& settings, bool continued = false);

}  // namespace sgdph::lab
