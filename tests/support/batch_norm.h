#pragma once

#include <sgdph/nn/functional.h>

#include "support/derivatives.h"

#include <torch/torch.h>

namespace sgdph::test {

/// One way to call batch norm.
struct BatchNormCase {
  std::vector<int64_t> sizes;
  bool channels_last = false;
  bool training = true;
  bool relu = false;
  bool residual = false;
  bool affine = true;
  torch::Dtype dtype = torch::kFloat64;

  nn::functional::BatchNormOptions options() const {
    nn::functional::BatchNormOptions options;
    options.training = training;
    options.relu = relu;
    return options;
  }
};

inline std::ostream& operator<<(std::ostream& out, const BatchNormCase& c) {
  return out << at::IntArrayRef(c.sizes) << (c.channels_last ? " channels last" : "")
             << (c.training ? " training" : " evaluation") << (c.relu ? " relu" : "") << (c.residual ? " residual" : "")
             << (c.affine ? " affine " : " ") << c.dtype;
}

/// Input, residual, gain and shift, undefined where there is none.
inline Tensors batch_norm_inputs(const BatchNormCase& c) {
  const auto random = [&](at::IntArrayRef sizes) { return torch::randn(sizes, c.dtype); };
  Tensors inputs(4);
  inputs[0] = random(c.sizes) * 1.5 + 0.5;
  if (c.residual) inputs[1] = random(c.sizes);
  if (c.affine) {
    inputs[2] = random({c.sizes[1]}) * 0.3 + 1;
    inputs[3] = random({c.sizes[1]}) * 0.3;
  }
  if (c.channels_last) {
    for (size_t i = 0; i < 2; ++i) {
      if (!inputs[i].defined()) continue;
      const auto format = c.sizes.size() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
      inputs[i] = inputs[i].contiguous(format);
    }
  }
  return inputs;
}

/// Running mean and variance, the same for every seed.
inline Tensors running_statistics(int64_t channels, torch::Dtype dtype) {
  const auto c = torch::arange(channels, torch::kFloat64);
  return {(c * 0.1 - 0.3).to(dtype), (c * 0.2 + 0.7).to(dtype)};
}

/// Ours, on input, residual, gain and shift.
inline at::Tensor fused_batch_norm(const BatchNormCase& c, const Tensors& inputs, const Tensors& running) {
  return nn::functional::batch_norm(inputs[0], inputs[1], inputs[2], inputs[3], running[0], running[1], c.options());
}

/// LibTorch's operators for the same.
inline at::Tensor stock_batch_norm(const BatchNormCase& c, const Tensors& inputs, const Tensors& running) {
  auto y = at::batch_norm(inputs[0], inputs[2], inputs[3], running[0], running[1], c.training, 0.1, 1e-5, false);
  if (inputs[1].defined()) y = y + inputs[1];
  return c.relu ? y.relu() : y;
}

/// The same from sums and products. LibTorch's batch norm takes mean and variance for constants in its third
/// derivative.
inline at::Tensor elementary_batch_norm(const BatchNormCase& c, const Tensors& inputs, const Tensors& running) {
  const auto& x = inputs[0];
  std::vector<int64_t> others{0}, channel_shape(x.dim(), 1);
  for (int64_t d = 2; d < x.dim(); ++d) others.push_back(d);
  channel_shape[1] = x.size(1);
  const auto mean = c.training ? x.mean(others, true) : running[0].view(channel_shape);
  const auto variance = c.training ? (x - mean).square().mean(others, true) : running[1].view(channel_shape);
  auto y = (x - mean) / (variance + 1e-5).sqrt();
  if (inputs[2].defined()) y = y * inputs[2].view(channel_shape) + inputs[3].view(channel_shape);
  if (inputs[1].defined()) y = y + inputs[1];
  return c.relu ? y.relu() : y;
}

}  // namespace sgdph::test
