#include "inspect/subject.h"

#include "base/error.h"
#include "data/loader.h"
#include "models/state_dict.h"
#include "train/run_parts.h"

#include <ATen/Functions.h>
#include <sgdph/frozen_statistics.h>
#include <torch/utils.h>

#include <cmath>

namespace sgdph::lab::inspect {

at::Tensor Subject::loss(int64_t begin, int64_t count) const {
  torch::manual_seed(static_cast<uint64_t>(settings.seed));
  model->train();
  const FrozenStatistics frozen(*model);
  return at::cross_entropy_loss(
      model->forward(images.narrow(0, begin, count)), labels.narrow(0, begin, count), {}, at::Reduction::Mean, -100,
      settings.label_smoothing);
}

Subject prepare_subject(const settings::Settings& settings, const SavedWeights& weights, bool float64) {
  auto parts = train::prepare_run(settings, /*continued=*/weights.state_dict.has_value());
  Subject subject;
  subject.settings = parts.settings;
  subject.model = parts.model;
  if (weights.state_dict) {
    models::load_state_dict(*subject.model, *weights.state_dict, weights.source);
    subject.source = weights.source;
  } else if (!subject.settings.init.empty()) {
    subject.source = subject.settings.init;
  } else {
    subject.source = fmt::format("weights as they begin, seed {}", subject.settings.seed);
  }
  const auto type = float64 ? at::kDouble : at::kFloat;
  const at::Device device(subject.settings.device);
  if (float64) subject.model->to(device, type);

  auto options = train::train_loader_options(subject.settings);
  options.workers = 0;  // one batch, and none ahead
  data::Loader loader(*parts.data.train, options);
  loader.start(0);
  const auto batch = loader.next();
  if (!batch) fail("{}: no image could be read", subject.settings.dataset);
  subject.images = batch->images.to(device, type);
  subject.labels = batch->labels.to(device);
  if (subject.images.size(0) < 2)
    fail("--batch-size: a batch of one image has no curvature to speak of; use 2 or more");
  const auto loss = subject.loss().item<double>();
  if (!std::isfinite(loss)) fail("{}: the loss on the batch is {}; these weights have diverged", subject.source, loss);
  return subject;
}

}  // namespace sgdph::lab::inspect
