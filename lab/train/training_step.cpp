#include "train/training_step.h"

#include "base/error.h"
#include "base/text.h"
#include "train/compat.h"

#include <ATen/Functions.h>
#include <sgdph/frozen_statistics.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace sgdph::lab::train {

at::Tensor scores_of(models::ImageModel& model, const at::Tensor& images, bool bf16) {
  const Autocast autocast(images.device(), bf16);
  const auto scores = model.forward(images);
  return bf16 ? scores.to(at::kFloat) : scores;
}

TrainingStep::Options TrainingStep::options_of(const settings::Settings& s) {
  const auto part = s.option<std::string>(optimizers::kCurvatureBatch, optimizers::kWholeBatch);
  return {optimizers::batch_part_from_text(part), s.label_smoothing, s.bf16()};
}

void TrainingStep::clear_gradients() const {
  for (const auto& parameter : model_.parameters()) parameter.mutable_grad().reset();
}

TrainingStep::Result TrainingStep::forward(const at::Tensor& images, const at::Tensor& labels) const {
  Result result{images, labels, scores_of(model_, images, options_.bf16), {}};
  result.loss = at::cross_entropy_loss(result.scores, labels, {}, at::Reduction::Mean, -100, options_.label_smoothing);
  return result;
}

void TrainingStep::backward(const Result& result, double share) const {
  const auto shared = [share](const at::Tensor& loss) { return share == 1 ? loss : loss * share; };
  if (options_.curvature_batch == 1) {
    optimizer_.backward(shared(result.loss));
    return;
  }
  shared(result.loss).backward();
  if (!optimizer_.curvature_due()) return;
  const auto images = result.images.size(0);
  // One image may be too few for batch norm.
  const auto part = std::clamp<int64_t>(
      std::llround(options_.curvature_batch * static_cast<double>(images)), std::min<int64_t>(2, images), images);
  const FrozenStatistics frozen(model_);
  optimizer_.update_curvature(shared(forward(result.images.narrow(0, 0, part), result.labels.narrow(0, 0, part)).loss));
}

}  // namespace sgdph::lab::train
