#include "models/resnet.h"

#include <ATen/Functions.h>

namespace sgdph::lab::models {
namespace {

namespace nn = torch::nn;

nn::Conv2dOptions conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, Norm norm) {
  return nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(!has_norm_layer(norm));
}

ConvNorm make_stem(nn::Module& parent, const ResNetShape& shape, const ModelOptions& options) {
  const auto channels = scaled_channels(shape.channels[0], options.width);
  const bool cifar = options.form == Form::Cifar;
  return {
      parent,
      "conv1",
      "bn1",
      conv(
          options.in_channels, channels, cifar ? 3 : 7, options.stem_stride > 0 ? options.stem_stride : (cifar ? 1 : 2),
          options.norm),
      {options.norm, options.kernels}};
}

}  // namespace

ResidualBlock::ResidualBlock(
    const ResNetShape& shape, int64_t in_channels, int64_t channels, int64_t stride, Layers layers)
    : stride_(stride), out_channels_(shape.block == ResNetShape::Block::Bottleneck ? 4 * channels : channels) {
  const auto norm = layers.norm;
  if (shape.block == ResNetShape::Block::Basic) {
    convs_.emplace_back(*this, "conv1", "bn1", conv(in_channels, channels, 3, stride, norm), layers);
    convs_.emplace_back(*this, "conv2", "bn2", conv(channels, out_channels_, 3, 1, norm), layers);
  } else {
    convs_.emplace_back(*this, "conv1", "bn1", conv(in_channels, channels, 1, 1, norm), layers);
    convs_.emplace_back(*this, "conv2", "bn2", conv(channels, channels, 3, stride, norm), layers);
    convs_.emplace_back(*this, "conv3", "bn3", conv(channels, out_channels_, 1, 1, norm), layers);
  }
  if (stride == 1 && in_channels == out_channels_) return;
  if (shape.shortcut == ResNetShape::Shortcut::Padding) {
    padded_channels_ = out_channels_ - in_channels;
    return;
  }
  auto downsample = register_module("downsample", std::make_shared<nn::Module>("downsample"));
  layers.rectified = false;
  projection_.emplace_back(*downsample, "0", "1", conv(in_channels, out_channels_, 1, stride, norm), layers);
}

at::Tensor ResidualBlock::shortcut(const at::Tensor& x) {
  if (!projection_.empty()) return projection_[0](x);
  if (stride_ == 1 && padded_channels_ == 0) return x;
  const auto strided = x.slice(2, c10::nullopt, c10::nullopt, stride_).slice(3, c10::nullopt, c10::nullopt, stride_);
  const auto before = padded_channels_ / 2;
  return at::constant_pad_nd(strided, {0, 0, 0, 0, before, padded_channels_ - before});
}

at::Tensor ResidualBlock::forward(const at::Tensor& x) {
  auto y = x;
  for (size_t i = 0; i + 1 < convs_.size(); ++i) y = convs_[i](y);
  return convs_.back()(y, shortcut(x));
}

ResNet::ResNet(const ResNetShape& shape, const ModelOptions& options)
    : form_(options.form), stem_(make_stem(*this, shape, options)) {
  auto channels = scaled_channels(shape.channels[0], options.width);
  for (size_t stage = 0; stage < shape.blocks.size(); ++stage) {
    const auto name = "layer" + std::to_string(stage + 1);
    auto layer = register_module(name, std::make_shared<nn::Module>(name));
    for (int64_t i = 0; i < shape.blocks[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      auto block = std::make_shared<ResidualBlock>(
          shape, channels, scaled_channels(shape.channels[stage], options.width), stride,
          Layers{options.norm, options.kernels});
      channels = block->out_channels();
      blocks_.push_back(layer->register_module(std::to_string(i), block));
    }
  }
  fc_ = register_module("fc", nn::Linear(channels, options.classes));
}

at::Tensor ResNet::forward(at::Tensor images) {
  auto x = stem_(images);
  if (form_ == Form::ImageNet) x = at::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
  for (auto& block : blocks_) x = block->forward(x);
  return fc_(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
}

ResNetShape ResNet::resnet8() {
  return {ResNetShape::Block::Basic, ResNetShape::Shortcut::Padding, {1, 1, 1}, {8, 16, 32}};
}

ResNetShape ResNet::resnet18() {
  return {ResNetShape::Block::Basic, ResNetShape::Shortcut::Projection, {2, 2, 2, 2}, {64, 128, 256, 512}};
}

ResNetShape ResNet::resnet20() {
  return {ResNetShape::Block::Basic, ResNetShape::Shortcut::Padding, {3, 3, 3}, {16, 32, 64}};
}

ResNetShape ResNet::resnet50() {
  return {ResNetShape::Block::Bottleneck, ResNetShape::Shortcut::Projection, {3, 4, 6, 3}, {64, 128, 256, 512}};
}

}  // namespace sgdph::lab::models
