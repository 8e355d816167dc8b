#include "train/training_step.h"

#include "base/error.h"
#include "base/text.h"

#include <ATen/Functions.h>
#include <sgdph/frozen_statistics.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace sgdph::lab::train {

TrainingStep::TrainingStep(
    models::ImageModel& model, optimizers::TrainingOptimizer& optimizer, double curvature_batch, double label_smoothing)
    : model_(model), optimizer_(optimizer), curvature_batch_(curvature_batch), label_smoothing_(label_smoothing) {}

void TrainingStep::clear_gradients() const {
  for (const auto& parameter : model_.parameters()) parameter.mutable_grad().reset();
}

TrainingStep::Result TrainingStep::forward(const at::Tensor& images, const at::Tensor& labels) const {
  Result result{images, labels, model_.forward(images), {}};
  result.loss = at::cross_entropy_loss(result.scores, labels, {}, at::Reduction::Mean, -100, label_smoothing_);
  return result;
}

void TrainingStep::backward(const Result& result, double share) const {
  const auto shared = [share](const at::Tensor& loss) { return share == 1 ? loss : loss * share; };
  if (curvature_batch_ == 1) {
    optimizer_.backward(shared(result.loss));
    return;
  }
  shared(result.loss).backward();
  if (!optimizer_.curvature_due()) return;
  const auto images = result.images.size(0);
  // One image may be too few for batch norm.
  const auto part = std::clamp<int64_t>(
      std::llround(curvature_batch_ * static_cast<double>(images)), std::min<int64_t>(2, images), images);
  const FrozenStatistics frozen(model_);
  optimizer_.update_curvature(shared(forward(result.images.narrow(0, 0, part), result.labels.narrow(0, 0, part)).loss));
}

}  // namespace sgdph::lab::train
