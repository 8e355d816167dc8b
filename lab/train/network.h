#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "settings/settings.h"

namespace sgdph::lab::data {
class Dataset;
}
namespace sgdph::lab::models {
class ImageModel;
}

namespace sgdph::lab::train {

/// The network of resolved settings for these images, initialised by their seed. Refuses images, and a smallest batch
/// of training, that it cannot take.
std::shared_ptr<models::ImageModel> build_model(
    const settings::Settings& settings, const data::Dataset& data, int64_t smallest_batch = 2);
/// Weights of a checkpoint or of a state dict that Python saved.
void load_weights(models::ImageModel& model, const std::string& file);

}  // namespace sgdph::lab::train
