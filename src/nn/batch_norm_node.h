#pragma once

#include "kernels/batch_norm.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

namespace sgdph::nn {

/// The first derivative of batch norm (+ residual) (+ rectifier) in autograd's graph. Edges: x, gain, shift, residual.
class BatchNormBackward : public torch::autograd::Node {
 public:
  BatchNormBackward(
      const at::Tensor& x, const at::Tensor& gain, const at::Tensor& shift, const at::Tensor& residual,
      kernels::Normalisation normalisation, double eps);

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override;
  void release_variables() override;
  std::string name() const override { return "sgdph::BatchNormBackward"; }

 private:
  torch::autograd::SavedVariable x_, gain_;
  kernels::Normalisation normalisation_;
  double eps_;
  bool has_gain_;
};

/// The second derivative: from what comes in for the gradients of x, gain, shift and residual. Edges: gy, x, gain.
class BatchNormBackwardBackward : public torch::autograd::Node {
 public:
  BatchNormBackwardBackward(
      const at::Tensor& gy, const at::Tensor& x, const at::Tensor& gain, kernels::Normalisation normalisation,
      double eps);

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override;
  void release_variables() override;
  std::string name() const override { return "sgdph::BatchNormBackwardBackward"; }

 private:
  torch::autograd::SavedVariable gy_, x_, gain_;
  kernels::Normalisation normalisation_;
  double eps_;
  bool has_gain_;
};

/// Records that `gradients` (those that are defined) came from gy, x and gain, if grad mode asks for it.
void record_batch_norm_backward(
    kernels::BatchNormGradients& gradients, const at::Tensor& gy, const at::Tensor& x, const at::Tensor& gain,
    const kernels::Normalisation& normalisation, double eps);

}  // namespace sgdph::nn
