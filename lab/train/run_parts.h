#pragma once

#include <memory>

#include "data/datasets.h"
#include "data/loader.h"
#include "models/image_model.h"
#include "optimizers/training_optimizer.h"
#include "settings/settings.h"

namespace sgdph::lab::train {

/// How training images are loaded.
data::LoaderOptions train_loader_options(const settings::Settings& settings);

/// What a run needs, made and checked before anything is written.
struct RunParts {
  settings::Settings settings;  ///< resolved
  data::DatasetPair data;
  std::shared_ptr<models::ImageModel> model;
  std::unique_ptr<optimizers::TrainingOptimizer> optimizer;
};
/// `continued`: the weights will come from a checkpoint, so `init` is not read.
RunParts prepare_run(const settings::Settings& settings, bool continued = false);

}  // namespace sgdph::lab::train
