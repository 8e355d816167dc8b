#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "inspect/hessian_block.h"
#include "optimizers/training_optimizer.h"
#include "records/inspect_record.h"
#include "settings/settings.h"

namespace sgdph::lab::inspect {

/// A block's curvature as SGD-PH holds it with one of the probes; of the channels whose rows are known, float64.
struct HeldEstimate {
  std::string probe;
  at::Tensor estimate;  ///< the running estimate with its sign, corrected for its start from zero
  at::Tensor divisor;   ///< rectified, what the momentum is divided by; undefined unless every row is known
};

/// The options of SGD-PH that what it holds depends on, but for the probe.
const std::vector<std::string>& estimate_options();

/// SGD-PH with each probe there is, fed with the Hessian blocks that were measured: the loss is 1/2 w'Hw, so that a
/// product costs next to nothing and the optimizer's own code does the rest. Weights and batch stand still: what the
/// estimates are off by is the probe's doing.
class RunningEstimates {
 public:
  /// Rule, smoothing and seed are the settings', of which a UserError may complain; the floor is that of the probe.
  RunningEstimates(const torch::nn::Module& model, const settings::Settings& settings, bool every_1d);

  /// After so many refreshes. A parameter that is no block to the optimizer, such as the last one of the published
  /// rule, has none.
  std::vector<HeldEstimate> of(const HessianBlock& hessian, int64_t refreshes);

  /// Rule and smoothing, every default filled in.
  const settings::Settings& settings() const { return settings_; }

 private:
  settings::Settings settings_;
  std::vector<std::string> probes_;
  std::vector<std::unique_ptr<optimizers::TrainingOptimizer>> optimizers_;
};

/// How far numbers are from the true diagonal.
records::Agreement agreement(const at::Tensor& numbers, const at::Tensor& diagonal);

/// All that is known of a block: its couplings, and how row sum and estimates agree with its diagonal.
records::BlockRow block_row(const HessianBlock& hessian, const std::vector<HeldEstimate>& held);

}  // namespace sgdph::lab::inspect
