#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace sgdph::lab::inspect {

/// What SGD-PH itself finds of a block at its first refresh.
struct GuardFinding {
  bool shift_invariant = false;  ///< marked by the shift guard
  at::Tensor row_sum;  ///< as measured with the paper's probe; undefined if marked, or if the loss is constant
};

/// Two products. The loss's graph stays; `parameters` are all of the network, to which the guard compares.
GuardFinding ask_guard(const at::Tensor& loss, const std::vector<at::Tensor>& parameters, const at::Tensor& block);

}  // namespace sgdph::lab::inspect
