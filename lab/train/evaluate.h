#pragma once

#include <ATen/core/Tensor.h>

#include "data/loader.h"
#include "dist/group.h"
#include "models/image_model.h"
#include "settings/settings.h"

namespace sgdph::lab::train {

struct Evaluation {
  double loss = 0;  ///< mean cross-entropy
  double top1 = 0;  ///< in per cent
  double top5 = 0;
  int64_t images = 0;
  int64_t damaged = 0;       ///< left out
  bool interrupted = false;  ///< on some rank, so that images are missing
};

/// How images are loaded that are not trained on: the first `images` in order, in batches no larger than that.
data::LoaderOptions in_order(const settings::Settings& settings, int64_t images);
/// The same for the test set, of which there may be a limit.
data::LoaderOptions test_loader_options(const settings::Settings& settings, const data::Dataset& data);

struct EvaluateOptions {
  int64_t limit = 0;             ///< of images; 0: none
  bool bf16 = false;             ///< autocast to bfloat16
  dist::Group* group = nullptr;  ///< whose ranks run over a part each; null: one process
};

/// Runs the network over one epoch of the loader in evaluation mode and restores its mode. With a group every rank runs
/// over its part, and all get the result of the whole: each image counts once.
Evaluation evaluate(
    models::ImageModel& model, data::Loader& loader, const at::Device& device, const EvaluateOptions& options = {});

}  // namespace sgdph::lab::train
