#pragma once

#include <sgdph/sgd_ph.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "optimizers/options.h"

namespace sgdph {
class CurvatureOptimizer;
}
namespace torch::nn {
class Module;
}

namespace sgdph::lab::optimizers {

/// An optimizer as the trainer uses it: LibTorch's and ours behind one interface.
class TrainingOptimizer {
 public:
  explicit TrainingOptimizer(std::unique_ptr<torch::optim::Optimizer> optimizer);

  torch::optim::Optimizer& base() { return *optimizer_; }
  /// Adds gradients, and measures the curvature that is due where the optimizer uses one.
  void backward(const at::Tensor& loss);
  /// Whether curvature is due now, which `backward` or `update_curvature` would measure.
  bool curvature_due();
  /// Measures the curvature that is due from any loss, and leaves gradients alone.
  void update_curvature(const at::Tensor& loss);
  /// Of processes that work together: which one this is, and what sums a tensor over them. It is called once for a step
  /// in which curvature is due.
  void share_with_ranks(int64_t rank, int64_t ranks, std::function<void(at::Tensor& tensor)> sum);
  /// False if the optimizer met a non-finite value and changed nothing.
  bool step();
  /// A line or two about what the optimizer made of the network's parameters; empty if there is nothing to say.
  std::string describe() const;

  double lr() const;
  std::string save() const;
  void load(const std::string& bytes);

 private:
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  CurvatureOptimizer* curvature_;  ///< the same, if it measures curvature
};

/// Weight decay of parameters in groups of their own, chosen as by torchvision's set_weight_decay: what is called bias
/// first, then what else norm layers hold. Nothing: as of the rest.
struct GroupDecay {
  std::optional<double> norm;
  std::optional<double> bias;
};

/// From resolved values (`resolve_optimizer`). A value the optimizer refuses is a UserError.
std::unique_ptr<TrainingOptimizer> make_optimizer(
    const torch::nn::Module& model, const std::string& name, const OptimizerValues& values, int64_t seed,
    const GroupDecay& decay = {});

/// The filter of resolved values; null for none. The curvature is measured all the same, so that time and random draws
/// are those of the run it is compared with.
SGDPH::CurvatureFilter curvature_control(const OptimizerValues& values);

/// Sets it, if the values have a control.
void set_curvature_control(torch::optim::Optimizer& optimizer, const OptimizerValues& values);

}  // namespace sgdph::lab::optimizers
