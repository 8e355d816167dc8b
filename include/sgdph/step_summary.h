#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sgdph {

/// What a step did.
struct StepSummary {
  struct RefreshedBlock {
    std::string name;
    at::Tensor parameter;
    at::Tensor estimate;  ///< z * (H z) of this refresh, signed, before rectification and smoothing
  };

  int64_t step = 0;      ///< steps applied so far; an optimizer that archives no count has those since construction
  bool applied = false;  ///< false: a non-finite gradient was met, and parameters and state are as they were
  std::vector<RefreshedBlock> blocks_refreshed;
  int64_t products = 0;            ///< Hessian-vector products, those of the shift guard included
  int64_t non_finite = 0;          ///< non-finite values met in gradients and curvature
  int64_t rejected_estimates = 0;  ///< curvature estimates that were dropped because they were not finite
};

}  // namespace sgdph
