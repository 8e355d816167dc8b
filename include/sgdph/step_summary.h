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
  bool applied = false;  ///< false: a non-finite gradient or curvature was met and nothing was changed
  std::vector<RefreshedBlock> blocks_refreshed;
  int64_t products = 0;    ///< Hessian-vector products, those of the shift guard included
  int64_t non_finite = 0;  ///< non-finite values met in gradients and curvature
};

}  // namespace sgdph
