#pragma once

#include <ATen/core/Tensor.h>

#include "data/loader.h"
#include "models/image_model.h"
#include "settings/settings.h"

namespace sgdph::lab {

struct Evaluation {
  double loss = 0;  ///< mean cross-entropy
  double top1 = 0;  ///< in per cent
  double top5 = 0;
  int64_t images = 0;
};

/// How test images are loaded: in order, in batches no larger than there are images.
LoaderOptions test_loader_options(const Settings& settings, const Dataset& data);

/// Runs the network over one epoch of the loader in evaluation mode and restores its mode.
Evaluation evaluate(ImageModel& model, Loader& loader, const at::Device& device);

}  // namespace sgdph::lab
