#pragma once

#include <sgdph/api.h>

#include <ATen/core/Tensor.h>

#include <array>

namespace sgdph::nn::functional {

struct Conv2dOptions {
  std::array<int64_t, 2> stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
};

/// A convolution by LibTorch's primitives whose double backward computes what is asked for and no more. `bias` may be
/// undefined. What it does not take (other devices, types and layouts) goes to `at::conv2d`.
SGDPH_API at::Tensor conv2d(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, const Conv2dOptions& options = {});

/// Whether a convolution with this weight may have its channels last. oneDNN 2.6, which LibTorch 1.13 uses, was seen to
/// write past the end of such tensors (a heap overrun in ResNet18 with 3 to 26 channels) when channels do not fill its
/// vectors of 16; few input channels, as of images, are a case of their own there. With groups, which were not tried,
/// it is taken to be unsafe. `conv2d` and its derivatives put other tensors in order first.
SGDPH_API bool safe_with_channels_last(const at::Tensor& weight, int64_t groups = 1);

struct BatchNormOptions {
  bool training = false;
  double momentum = 0.1;  ///< weight of the batch in the running statistics
  double eps = 1e-5;
  bool relu = false;  ///< rectify the result
};

/// Batch norm over all dimensions but the second, then plus `residual` if it is defined, then rectified if asked for,
/// with first and second derivatives in fused kernels. Gain, shift, residual and, in training, running statistics may
/// be undefined. What the kernels do not take goes to LibTorch's operators.
SGDPH_API at::Tensor batch_norm(
    const at::Tensor& input, const at::Tensor& residual, const at::Tensor& gain, const at::Tensor& shift,
    const at::Tensor& running_mean, const at::Tensor& running_var, const BatchNormOptions& options = {});

}  // namespace sgdph::nn::functional
