#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/datasets.h"
#include "data/loader.h"
#include "models/image_model.h"
#include "optimizers/training_optimizer.h"
#include "settings/settings.h"

namespace sgdph::lab::train {

/// The network of resolved settings for these images, initialised by their seed. Refuses images, and a smallest batch
/// of training, that it cannot take.
std::shared_ptr<models::ImageModel> build_model(
    const settings::Settings& settings, const data::Dataset& data, int64_t smallest_batch = 2);
/// Weights of a checkpoint or of a state dict that Python saved.
void load_weights(models::ImageModel& model, const std::string& file);

/// The optimizer of resolved settings.
std::unique_ptr<optimizers::TrainingOptimizer> make_optimizer(
    const models::ImageModel& model, const settings::Settings& settings);

/// What PyTorch would say of an operator between parameters and loss that cannot be differentiated twice; empty if all
/// can be.
std::string without_second_derivative(const at::Tensor& loss, const std::vector<at::Tensor>& parameters);

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
