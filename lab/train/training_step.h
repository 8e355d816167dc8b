#pragma once

#include <string>

#include "models/image_model.h"
#include "optimizers/training_optimizer.h"

namespace sgdph::lab::train {

/// Gradients of one batch, and the curvature that is due: from the same graph, or, if `curvature_batch` is less than 1,
/// from a second pass over the batch's first images after the first graph is freed. That pass leaves the running
/// statistics of batch norm alone.
class TrainingStep {
 public:
  struct Result {
    at::Tensor images, labels;
    at::Tensor scores, loss;
  };

  TrainingStep(
      models::ImageModel& model, optimizers::TrainingOptimizer& optimizer, double curvature_batch,
      double label_smoothing = 0);

  /// Gradients are let go, not set to zero: autograd then hands its own on instead of adding them up.
  void clear_gradients() const;
  Result forward(const at::Tensor& images, const at::Tensor& labels) const;
  /// Frees the graph of `result`. `share`: of the step's images, which is the batch's weight in the step's loss.
  void backward(const Result& result, double share = 1) const;

 private:
  models::ImageModel& model_;
  optimizers::TrainingOptimizer& optimizer_;
  double curvature_batch_;
  double label_smoothing_;
};

}  // namespace sgdph::lab::train
