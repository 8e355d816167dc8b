#include "train/evaluate.h"

#include "base/error.h"
#include "base/interrupt.h"

#include <ATen/Functions.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

namespace sgdph::lab::train {

data::LoaderOptions test_loader_options(const settings::Settings& settings, const data::Dataset& data) {
  data::LoaderOptions options;
  options.shuffle = false;
  options.workers = *settings.workers;
  options.limit = settings.test_limit > 0 ? std::min(settings.test_limit, data.size()) : data.size();
  options.batch_size = std::min(settings.batch_size, options.limit);
  options.skip_damaged = settings.skip_damaged;
  options.pin_memory = settings.device != "cpu";
  return options;
}

Evaluation evaluate(models::ImageModel& model, data::Loader& loader, const at::Device& device, int64_t limit) {
  const c10::InferenceMode inference;
  const bool training = model.is_training();
  model.eval();
  Evaluation result;
  double loss = 0;
  int64_t top1 = 0;
  int64_t top5 = 0;
  loader.start(0);
  while (const auto batch = loader.next()) {
    const auto scores = model.forward(batch->images.to(device));
    const auto labels = batch->labels.to(device);
    loss += at::cross_entropy_loss(scores, labels, {}, at::Reduction::Sum).item<double>();
    const auto k = std::min<int64_t>(5, scores.size(1));
    const auto hits = std::get<1>(scores.topk(k, 1)).eq(labels.unsqueeze(1));
    top1 += hits.select(1, 0).sum().item<int64_t>();
    top5 += hits.sum().item<int64_t>();
    result.images += labels.size(0);
    if (interrupted() || (limit > 0 && result.images >= limit)) break;
  }
  model.train(training);
  if (result.images == 0) fail("there is no image to evaluate on");
  const auto images = static_cast<double>(result.images);
  result.loss = loss / images;
  result.top1 = 100 * static_cast<double>(top1) / images;
  result.top5 = 100 * static_cast<double>(top5) / images;
  return result;
}

}  // namespace sgdph::lab::train
