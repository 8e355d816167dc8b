#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "cost/engine.h"
#include "tables/statistics.h"
#include "train/training_step.h"

namespace sgdph {
class SGDPH;
}

namespace sgdph::lab::cost {

/// A network and a batch: what every engine works on.
struct Workload {
  std::string model = "resnet18";
  std::string form = "cifar";
  int64_t batch_size = 32;
  int64_t seed = 1;

  models::ModelOptions model_options(models::Kernels kernels) const;
  int64_t image_size() const { return form == "imagenet" ? 224 : 32; }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Workload, model, form, batch_size, seed)

/// Random images and labels. All engines of a process share one.
struct TimedBatch {
  explicit TimedBatch(const Workload& workload);
  at::Tensor images, labels;
};

/// An engine at work, with a network and an optimizer of its own. The block that is due is ours to choose: its turn is
/// brought about by steps that only pass the turn on, without gradients and at no cost worth mentioning.
class EngineRun {
 public:
  EngineRun(Engine engine, const Workload& workload, TimedBatch batch);

  const Engine& engine() const { return engine_; }
  /// Names of the blocks in the network's order; empty if every step costs the same.
  const std::vector<std::string>& blocks() const { return blocks_; }
  int64_t positions() const { return static_cast<int64_t>(blocks_.size()); }

  /// Makes all ready for a step at which this block is due, or none with kNothingDue: the operators as well, which are
  /// the process's.
  void prepare(int64_t position);
  /// Gradients cleared, forward, loss, backward with the curvature that is due, update.
  void step();

  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  /// The block whose curvature the last step refreshed; empty if none.
  std::string last_refreshed() const;

 private:
  bool refresh_step() const { return steps_ % engine_.refresh_every() == 0; }
  void pass_turn();
  void published_backward(const train::TrainingStep::Result& result);
  void update();
  /// Hands SGD-PH the row sums of the block that is due: they are those of 1/2 sum(h w^2).
  void supply_curvature(const at::Tensor& row_sum);

  Engine engine_;
  TimedBatch batch_;
  std::shared_ptr<models::ImageModel> model_;
  std::unique_ptr<optimizers::TrainingOptimizer> optimizer_;
  train::TrainingStep step_;
  std::vector<at::Tensor> parameters_;
  SGDPH* sgd_ph_ = nullptr;  ///< null for other optimizers
  std::vector<std::string> blocks_;
  std::vector<size_t> block_parameters_;  ///< their places among the parameters
  int64_t steps_ = 0;                     ///< applied so far
  int64_t next_ = 0;                      ///< position of the block whose turn is next
};

struct PublishedProduct {
  std::vector<at::Tensor> gradients;  ///< of all parameters, without a graph
  at::Tensor row_sum;                 ///< of the block: H 1
};

/// Gradients and a block's row sum as in the published code: the second differentiation starts from the gradients of
/// the block and of every later parameter, with ones for the block and *explicit zeros* for the others, and asks for
/// all of these parameters. The block's entry equals our product; the rest is computed and thrown away.
/// `block` is an index into `parameters`, which are in the network's order. Frees the loss's graph.
PublishedProduct published_product(const at::Tensor& loss, const std::vector<at::Tensor>& parameters, size_t block);

}  // namespace sgdph::lab::cost
