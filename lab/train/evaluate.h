#pragma once

#include <ATen/core/Tensor.h>

#include "data/loader.h"
#include "models/image_model.h"
#include "settings/settings.h"

namespace sgdph::lab::train {

struct Evaluation {
  double loss = 0;  ///< mean cross-entropy
  double top1 = 0;  ///< in per cent
  double top5 = 0;
  int64_t images = 0;
};

/// How test images are loaded: in order, in batches no larger than there are images.
data::LoaderOptions test_loader_options(const settings::Settings& settings, const data::Dataset& data);

/// Runs the network over one epoch of the loader in evaluation mode and restores its mode.
Evaluation evaluate(models::ImageModel& model, data::Loader& loader, const at::Device& device, int64_t limit = 0);

}  // namespace sgdph::lab::train
