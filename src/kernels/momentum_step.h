#pragma once

#include <ATen/core/Tensor.h>

namespace sgdph::kernels {

/// momentum = keep*momentum + take*gradient + decay*parameter, then parameter = shrink*parameter - rate*momentum: SGD's
/// step in one pass over memory.
struct MomentumStep {
  double keep = 0;
  double take = 1;
  double decay = 0;
  double shrink = 1;
  double rate = 0;
};

/// Whether the kernel takes these tensors: float or double values on a CPU, laid out alike without gaps, in memory of
/// their own. Without a `momentum` tensor the step's `keep` is to be 0.
bool momentum_step_takes(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& momentum);
void momentum_step(
    const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& momentum, const MomentumStep& step);

}  // namespace sgdph::kernels
