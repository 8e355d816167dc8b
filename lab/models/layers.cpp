#include "models/layers.h"

#include "base/error.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace sgdph::lab::models {
namespace {

namespace nn = torch::nn;

template <class Conv>
Conv initialised_conv(const nn::Conv2dOptions& options) {
  Conv conv(options);
  nn::init::kaiming_normal_(conv->weight, /*a=*/0, torch::kFanOut, torch::kReLU);
  if (conv->bias.defined()) nn::init::zeros_(conv->bias);
  return conv;
}

/// The normalised layer overwrites the values it draws for itself; so that a seed gives the same network with and
/// without weight normalisation, the draws are taken back.
WeightNormConv2d weight_normed(const nn::Conv2d& plain) {
  auto generator = at::detail::getDefaultCPUGenerator();
  const auto before = generator.get_state();
  WeightNormConv2d normed(plain);
  generator.set_state(before);
  return normed;
}

/// In the memory of x, which must be a fresh result that no backward pass reads. A view (instance norm returns one) is
/// left alone: autograd would record a copy for it.
at::Tensor add_over(const at::Tensor& x, const at::Tensor& y) {
  return x.is_view() ? x + y : x.add_(y);
}

}  // namespace

at::Tensor relu_over(const at::Tensor& x) {
  return x.is_view() ? x.relu() : x.relu_();
}

bool has_norm_layer(Norm norm) {
  return norm != Norm::None && norm != Norm::Weight;
}

int64_t norm_groups(int64_t channels) {
  int64_t groups = std::min<int64_t>(32, channels);
  while (channels % groups != 0) --groups;
  return groups;
}

int64_t scaled_channels(int64_t channels, double width) {
  const auto scaled = static_cast<int64_t>(std::llround(static_cast<double>(channels) * width));
  if (scaled < 1) {
    fail("width {} leaves no channel of {}; use at least {}", width, channels, 0.5 / static_cast<double>(channels));
  }
  return scaled;
}

ConvNorm::ConvNorm(
    nn::Module& parent, const std::string& conv_name, const std::string& norm_name, const nn::Conv2dOptions& options,
    Layers layers)
    : rectified_(layers.rectified) {
  const bool fast = layers.kernels == Kernels::Fast;
  if (layers.norm == Norm::Weight) {
    conv_ = weight_normed(initialised_conv<nn::Conv2d>(options));
  } else if (fast) {
    conv_ = initialised_conv<sgdph::nn::Conv2d>(options);
  } else {
    conv_ = initialised_conv<nn::Conv2d>(options);
  }
  std::visit([&](auto& layer) { parent.register_module(conv_name, layer); }, conv_);

  const auto channels = options.out_channels();
  switch (layers.norm) {
    case Norm::Batch:
      if (!fast) {
        norm_ = nn::BatchNorm2d(channels);
      } else if (layers.rectified) {
        norm_ = sgdph::nn::BatchNormReLU2d(channels);
      } else {
        norm_ = sgdph::nn::BatchNorm2d(channels);
      }
      break;
    case Norm::Layer: norm_ = nn::GroupNorm(1, channels); break;
    case Norm::Group: norm_ = nn::GroupNorm(norm_groups(channels), channels); break;
    case Norm::Instance: norm_ = nn::InstanceNorm2d(nn::InstanceNorm2dOptions(channels).affine(true)); break;
    case Norm::None:
    case Norm::Weight: return;
  }
  std::visit(
      [&](auto& layer) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(layer)>, std::monostate>) {
          parent.register_module(norm_name, layer);
        }
      },
      norm_);
}

at::Tensor ConvNorm::operator()(const at::Tensor& x, const at::Tensor& residual) {
  auto y = std::visit([&](auto& layer) { return layer->forward(x); }, conv_);
  if (auto* fused = std::get_if<sgdph::nn::BatchNormReLU2d>(&norm_)) return (*fused)->forward(y, residual);
  y = std::visit(
      [&](auto& layer) {
        if constexpr (std::is_same_v<std::decay_t<decltype(layer)>, std::monostate>) {
          return y;
        } else if constexpr (std::is_same_v<std::decay_t<decltype(layer)>, nn::GroupNorm>) {
          // As autocast has it on GPUs; on CPUs LibTorch 1.13 takes no half precision beside weights in float32.
          return layer->forward(y.to(layer->weight.scalar_type()));
        } else {
          return layer->forward(y);
        }
      },
      norm_);
  if (residual.defined()) y = add_over(y, residual);
  return rectified_ ? relu_over(y) : y;
}

}  // namespace sgdph::lab::models
