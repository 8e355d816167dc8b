#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <string>

#include "settings/settings.h"

namespace torch::nn {
class Module;
}

namespace sgdph::lab {

/// An optimizer as the trainer uses it: LibTorch's and ours behind one interface.
class TrainingOptimizer {
 public:
  virtual ~TrainingOptimizer() = default;

  torch::optim::Optimizer& base() { return *optimizer_; }
  /// Adds gradients, and measures the curvature that is due where the optimizer uses one.
  virtual void backward(const at::Tensor& loss) = 0;
  /// Whether curvature is due now, which `backward` or `update_curvature` would measure.
  virtual bool curvature_due() { return false; }
  /// Measures the curvature that is due from any loss, and leaves gradients alone.
  virtual void update_curvature(const at::Tensor& /*loss*/) {}
  /// False if the optimizer met a non-finite value and changed nothing.
  virtual bool step() = 0;
  /// A line or two about what the optimizer made of the network's parameters; empty if there is nothing to say.
  virtual std::string describe() const { return ""; }

  double lr() const;
  std::string save() const;
  void load(const std::string& bytes);

 protected:
  explicit TrainingOptimizer(std::unique_ptr<torch::optim::Optimizer> optimizer) : optimizer_(std::move(optimizer)) {}

 private:
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

/// Sets every setting of the chosen optimizer that is unset to the optimizer's own default.
void fill_optimizer_defaults(Settings& settings);

/// From filled settings. A value the optimizer refuses is a UserError.
std::unique_ptr<TrainingOptimizer> make_optimizer(const torch::nn::Module& model, const Settings& settings);

}  // namespace sgdph::lab
