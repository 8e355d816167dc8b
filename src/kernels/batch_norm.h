#pragma once

#include <ATen/core/Tensor.h>

#include <array>

// Batch norm with an optional sum and rectifier behind it, y = relu(gain*(x - mean)/sqrt(var + eps) + shift +
// residual), with first and second derivatives, on tensors. No autograd here.

namespace sgdph::kernels {

/// Whether the kernels take this tensor: float or double values on a CPU, not empty, channels in dimension 1.
bool batch_norm_takes(const at::Tensor& x);

/// What a forward pass leaves for the others. Mean and 1/sqrt(var + eps) are double, one value per channel.
struct Normalisation {
  at::Tensor mean, invstd;
  at::Tensor mask;  ///< bits of what the rectifier passed; undefined without one
  bool training = false;
};

struct ForwardOptions {
  bool training = false;
  double momentum = 0.1;  ///< weight of the batch in the running statistics
  double eps = 1e-5;
  bool rectified = false;
  bool keep_mask = true;
};

/// Undefined tensors stand for what there is not. In training, running statistics are updated.
at::Tensor batch_norm_forward(
    const at::Tensor& x, const at::Tensor& residual, const at::Tensor& gain, const at::Tensor& shift,
    const at::Tensor& running_mean, const at::Tensor& running_var, const ForwardOptions& options,
    Normalisation& normalisation);

struct BatchNormGradients {
  at::Tensor x, gain, shift, residual;
};
/// `wanted` in the order of BatchNormGradients. `gy` is written over where nobody else holds it and `reuse` allows it.
BatchNormGradients batch_norm_backward(
    at::Tensor gy, const at::Tensor& x, const at::Tensor& gain, const Normalisation& normalisation,
    std::array<bool, 4> wanted, bool reuse);

struct BatchNormDoubleGradients {
  at::Tensor gy, x, gain;
};
/// The derivative of `batch_norm_backward`, given what comes in for each of its results (any may be undefined).
BatchNormDoubleGradients batch_norm_double_backward(
    const BatchNormGradients& incoming, const at::Tensor& gy, const at::Tensor& x, const at::Tensor& gain,
    const Normalisation& normalisation, std::array<bool, 3> wanted);

/// The mask as zeros and ones of the shape and type of `x`.
at::Tensor unpacked_mask(const at::Tensor& mask, const at::Tensor& x);

}  // namespace sgdph::kernels
