#include "models/vgg.h"

#include <ATen/Functions.h>
#include <torch/nn/init.h>

namespace sgdph::lab::models {
namespace {

namespace nn = torch::nn;

constexpr int64_t kPooledSize = 7;
constexpr int64_t kHiddenUnits = 4096;

nn::Linear initialised_linear(int64_t in, int64_t out) {
  nn::Linear linear(in, out);
  nn::init::normal_(linear->weight, 0, 0.01);
  nn::init::zeros_(linear->bias);
  return linear;
}

}  // namespace

VGG::VGG(const Shape& shape, const ModelOptions& options) : form_(options.form) {
  auto features = register_module("features", std::make_shared<nn::Module>("features"));
  // torchvision counts rectifiers and pools as members of its sequence.
  int64_t index = 0;
  auto channels = options.in_channels;
  for (const auto& stage : shape) {
    auto& convs = stages_.emplace_back();
    for (const auto planned : stage) {
      const auto out = scaled_channels(planned, options.width);
      convs.emplace_back(
          *features, std::to_string(index), std::to_string(index + 1),
          nn::Conv2dOptions(channels, out, 3).padding(1).bias(true), Layers{options.norm, options.kernels});
      index += has_norm_layer(options.norm) ? 3 : 2;
      channels = out;
    }
    ++index;
  }
  if (form_ == Form::Cifar) {
    linears_.push_back(initialised_linear(channels, options.classes));
    register_module("classifier", linears_[0]);
    return;
  }
  auto classifier = register_module("classifier", std::make_shared<nn::Module>("classifier"));
  const auto hidden = scaled_channels(kHiddenUnits, options.width);
  linears_.push_back(initialised_linear(channels * kPooledSize * kPooledSize, hidden));
  linears_.push_back(initialised_linear(hidden, hidden));
  linears_.push_back(initialised_linear(hidden, options.classes));
  for (size_t i = 0; i < linears_.size(); ++i) {
    classifier->register_module(std::to_string(3 * i), linears_[i]);
    if (i + 1 == linears_.size()) break;
    dropouts_.emplace_back(nn::DropoutOptions(0.5));
    classifier->register_module(std::to_string(3 * i + 2), dropouts_.back());
  }
}

at::Tensor VGG::forward(at::Tensor images) {
  const bool cifar = form_ == Form::Cifar;
  auto x = images;
  for (auto& stage : stages_) {
    for (auto& conv : stage) x = conv(x);
    x = at::max_pool2d(x, /*kernel_size=*/2, /*stride=*/2, /*padding=*/0, /*dilation=*/1, /*ceil_mode=*/cifar);
  }
  const int64_t pooled = cifar ? 1 : kPooledSize;
  x = at::adaptive_avg_pool2d(x, {pooled, pooled}).flatten(1);
  for (size_t i = 0; i < dropouts_.size(); ++i) x = dropouts_[i](relu_over(linears_[i](x)));
  return linears_.back()(x);
}

VGG::Shape VGG::vgg11() {
  return {{64}, {128}, {256, 256}, {512, 512}, {512, 512}};
}

VGG::Shape VGG::vgg19() {
  return {{64, 64}, {128, 128}, {256, 256, 256, 256}, {512, 512, 512, 512}, {512, 512, 512, 512}};
}

}  // namespace sgdph::lab::models
