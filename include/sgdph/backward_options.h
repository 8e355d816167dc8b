#pragma once

#include <sgdph/api.h>

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <string>
#include <vector>

namespace sgdph {

/// What `backward` and `update_curvature` of an optimizer that measures curvature are told about the loss they get.
struct SGDPH_API BackwardOptions {
  /// Keep the loss's graph for another pass. (`update_curvature` keeps it always.)
  TORCH_ARG(bool, retain_graph) = false;
  /// The loss handed in is this many times the loss that is meant, as with a gradient scaler. Curvature is divided by
  /// it; `.grad` is left to the caller to unscale, as ever.
  TORCH_ARG(double, scale) = 1;
  /// The same as a scalar tensor, so that nothing waits for a device; in place of `scale`.
  TORCH_ARG(at::Tensor, scale_tensor) = {};
  /// False: gradients only.
  TORCH_ARG(bool, measure) = true;
  /// The curvature of this loss counts so many times: n, if it is measured for one of n equal micro-batches alone.
  TORCH_ARG(double, represents) = 1;
  /// The tensors that get gradients, and among which curvature is measured; empty: every leaf, as `loss.backward()`.
  TORCH_ARG(std::vector<at::Tensor>, inputs) = {};

 public:
  /// Refuses numbers that make no sense; `who` opens the message.
  void check(const std::string& who) const;
};

}  // namespace sgdph
