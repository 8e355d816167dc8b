#include "train/evaluate.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "train/training_step.h"

#include <ATen/Functions.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

namespace sgdph::lab::train {

data::LoaderOptions test_loader_options(const settings::Settings& settings, const data::Dataset& data) {
  return in_order(settings, settings.test_limit > 0 ? std::min(settings.test_limit, data.size()) : data.size());
}

data::LoaderOptions in_order(const settings::Settings& settings, int64_t images) {
  data::LoaderOptions options;
  options.shuffle = false;
  options.workers = *settings.workers;
  options.limit = images;
  options.batch_size = std::min(settings.batch_size, options.limit);
  options.skip_damaged = settings.skip_damaged;
  options.pin_memory = settings.device != "cpu";
  return options;
}

Evaluation evaluate(
    models::ImageModel& model, data::Loader& loader, const at::Device& device, const EvaluateOptions& options) {
  const c10::InferenceMode inference;
  const bool training = model.is_training();
  model.eval();
  Evaluation result;
  double loss = 0;
  int64_t top1 = 0;
  int64_t top5 = 0;
  loader.start(0);
  const auto wanted = options.limit > 0 ? std::min(options.limit, loader.images()) : loader.images();
  // The batch's place among those of all ranks says whether it is wanted.
  for (auto from = loader.position(); from * loader.batch_size() < wanted; from = loader.position()) {
    auto batch = loader.next();
    if (!batch) break;
    // The last batch may reach beyond what is wanted.
    const auto most = wanted - from * loader.batch_size();
    if (batch->labels.size(0) > most) *batch = {batch->images.narrow(0, 0, most), batch->labels.narrow(0, 0, most)};
    if (batch->labels.size(0) == 0) continue;
    const auto scores = scores_of(model, batch->images.to(device), options.bf16);
    const auto labels = batch->labels.to(device);
    loss += at::cross_entropy_loss(scores, labels, {}, at::Reduction::Sum).item<double>();
    const auto k = std::min<int64_t>(5, scores.size(1));
    const auto hits = std::get<1>(scores.topk(k, 1)).eq(labels.unsqueeze(1));
    top1 += hits.select(1, 0).sum().item<int64_t>();
    top5 += hits.sum().item<int64_t>();
    result.images += labels.size(0);
    result.interrupted = interrupted();
    if (result.interrupted) break;
  }
  model.train(training);
  result.damaged = loader.damaged();
  if (auto* group = options.group; group != nullptr && !group->alone()) {
    const std::vector<double> own{
        loss,
        static_cast<double>(top1),
        static_cast<double>(top5),
        static_cast<double>(result.images),
        static_cast<double>(result.damaged),
        result.interrupted ? 1. : 0.};
    auto all = at::tensor(own, at::kDouble).to(device);
    group->sum(all);
    all = all.cpu();
    const auto* figure = all.data_ptr<double>();
    loss = figure[0];
    top1 = static_cast<int64_t>(figure[1]);
    top5 = static_cast<int64_t>(figure[2]);
    result.images = static_cast<int64_t>(figure[3]);
    result.damaged = static_cast<int64_t>(figure[4]);
    result.interrupted = figure[5] > 0;
  }
  if (result.images == 0 && result.interrupted) return result;
  if (result.images == 0) fail("there is no image to evaluate on");
  const auto images = static_cast<double>(result.images);
  result.loss = loss / images;
  result.top1 = 100 * static_cast<double>(top1) / images;
  result.top5 = 100 * static_cast<double>(top5) / images;
  return result;
}

}  // namespace sgdph::lab::train
