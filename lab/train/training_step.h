#pragma once

#include <string>

#include "models/image_model.h"
#include "optimizers/training_optimizer.h"
#include "settings/settings.h"

namespace sgdph::lab::train {

/// The network's scores; `bf16`: by autocast to bfloat16, and in 32 bits again.
at::Tensor scores_of(models::ImageModel& model, const at::Tensor& images, bool bf16);

/// Gradients of one batch, and the curvature that is due: from the same graph, or, if `curvature_batch` is below 1,
/// from a second pass over the batch's first images after the first graph is freed. That pass leaves the running
/// statistics of batch norm alone.
class TrainingStep {
 public:
  struct Result {
    at::Tensor images, labels;
    at::Tensor scores, loss;
  };

  struct Options {
    double curvature_batch = 1;  ///< part of the batch
    double label_smoothing = 0;
    bool bf16 = false;  ///< autocast to bfloat16
  };
  static Options options_of(const settings::Settings& settings);

  TrainingStep(models::ImageModel& model, optimizers::TrainingOptimizer& optimizer, const Options& options)
      : model_(model), optimizer_(optimizer), options_(options) {}

  /// Gradients are let go, not set to zero: autograd then hands its own on instead of adding them up.
  void clear_gradients() const;
  Result forward(const at::Tensor& images, const at::Tensor& labels) const;
  /// Frees the graph of `result`. `share`: of the step's images, which is the batch's weight in the step's loss.
  void backward(const Result& result, double share = 1) const;

 private:
  models::ImageModel& model_;
  optimizers::TrainingOptimizer& optimizer_;
  Options options_;
};

}  // namespace sgdph::lab::train
