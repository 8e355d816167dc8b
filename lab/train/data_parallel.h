#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "data/loader.h"
#include "dist/gradient_buckets.h"
#include "dist/group.h"
#include "formats/checkpoint_file.h"
#include "optimizers/training_optimizer.h"

namespace torch::nn {
class Module;
}

namespace sgdph::lab::train {

/// What the steps of several processes need beside those of one. Every rank has the whole network and optimizer and
/// sees its part of a step's images; gradients and curvature are summed over ranks, so that weights stay the same bits
/// everywhere. Running statistics of norm layers become the mean over the ranks that saw a batch, at every step: a
/// checkpoint of rank 0 is then a checkpoint of all.
///
/// Alone it does nothing.
class DataParallel {
 public:
  /// Sums over a step's images, and what is wanted after it.
  struct Totals {
    double loss = 0;
    int64_t correct = 0;
    int64_t seen = 0;
    bool stop = false;        ///< a rank was asked to stop
    bool checkpoint = false;  ///< rank 0's clock says so
  };

  /// Gives every rank the weights and buffers of rank 0. `optimizer` and `group` must outlive it.
  DataParallel(const torch::nn::Module& model, optimizers::TrainingOptimizer& optimizer, dist::Group& group);

  dist::Group& group() { return group_; }

  /// Before the last backward pass of a step: sends what does not depend on it. `worked`: this rank had a batch.
  void begin(const Totals& own, bool worked = true);
  /// Gradients are those of all ranks, and so is what it returns.
  Totals finish();

 private:
  dist::Group& group_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> means_;   ///< buffers to be averaged
  std::vector<at::Tensor> counts_;  ///< buffers of whole numbers: rank 0's hold
  dist::GradientBuckets buckets_;
  Totals totals_;
  at::Tensor flat_;  ///< under way
  dist::Wait wait_;
};

/// Gives every rank the weights and buffers of rank 0.
void share_weights(const torch::nn::Module& model, dist::Group& group);

/// Rank 0's checkpoint for all ranks.
std::optional<formats::CheckpointFile> share_checkpoint(
    dist::Group& group, std::optional<formats::CheckpointFile> checkpoint);

/// Every rank has its part of the batches.
data::LoaderOptions shared_by(const dist::Group& group, data::LoaderOptions options);

}  // namespace sgdph::lab::train
