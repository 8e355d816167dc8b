#include "models/layers.h"

#include "base/error.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace sgdph::lab {
namespace {

namespace nn = torch::nn;

nn::Conv2d initialised_conv(const nn::Conv2dOptions& options) {
  nn::Conv2d conv(options);
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

}  // namespace

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
    Norm norm) {
  auto conv = initialised_conv(options);
  if (norm == Norm::Weight) {
    conv_ = weight_normed(conv);
  } else {
    conv_ = conv;
  }
  std::visit([&](auto& layer) { parent.register_module(conv_name, layer); }, conv_);

  const auto channels = options.out_channels();
  switch (norm) {
    case Norm::Batch: norm_ = nn::BatchNorm2d(channels); break;
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

at::Tensor ConvNorm::operator()(const at::Tensor& x) {
  auto y = std::visit([&](auto& layer) { return layer->forward(x); }, conv_);
  return std::visit(
      [&](auto& layer) {
        if constexpr (std::is_same_v<std::decay_t<decltype(layer)>, std::monostate>) {
          return y;
        } else {
          return layer->forward(y);
        }
      },
      norm_);
}

at::Tensor relu_over(const at::Tensor& x) {
  return x.is_view() ? x.relu() : x.relu_();
}

at::Tensor add_over(const at::Tensor& x, const at::Tensor& y) {
  return x.is_view() ? x + y : x.add_(y);
}

}  // namespace sgdph::lab
