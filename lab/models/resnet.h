#pragma once

#include "models/layers.h"

#include <torch/nn/modules/linear.h>

#include <vector>

namespace sgdph::lab::models {

/// What a residual network is made of.
struct ResNetShape {
  enum class Block { Basic, Bottleneck };
  /// How a block's input meets an output of another shape: a 1x1 convolution (option B of He et al.), or every second
  /// pixel with channels of zeros around (option A), which has no parameters.
  enum class Shortcut { Projection, Padding };

  Block block = Block::Basic;
  Shortcut shortcut = Shortcut::Projection;
  std::vector<int64_t> blocks;    ///< per stage
  std::vector<int64_t> channels;  ///< per stage, of the 3x3 convolutions; the stem has those of the first
};

/// One residual block: relu(shortcut(x) + F(x)).
class ResidualBlock : public torch::nn::Module {
 public:
  ResidualBlock(const ResNetShape& shape, int64_t in_channels, int64_t channels, int64_t stride, Layers layers);
  at::Tensor forward(const at::Tensor& x);
  int64_t out_channels() const { return out_channels_; }

 private:
  at::Tensor shortcut(const at::Tensor& x);

  std::vector<ConvNorm> convs_;
  std::vector<ConvNorm> projection_;  ///< one or none
  int64_t stride_;
  int64_t padded_channels_ = 0;  ///< how many the padding shortcut adds
  int64_t out_channels_;
};

/// Residual networks: "Deep Residual Learning for Image Recognition", He, Zhang, Ren, Sun 2016. ResNet18 and ResNet50
/// are torchvision's, parameter names included; the bottleneck has its stride on the 3x3 convolution (v1.5), where the
/// paper has it on the first 1x1. The CIFAR form has a 3x3 stem and no max-pool. ResNet20 is the paper's section 4.2;
/// its zero channels go half before and half after, as common PyTorch versions have it (the paper does not say).
/// ResNet8 is the same with one block per stage and half the channels.
class ResNet : public ImageModel {
 public:
  ResNet(const ResNetShape& shape, const ModelOptions& options);
  at::Tensor forward(at::Tensor images) override;

  static ResNetShape resnet8();
  static ResNetShape resnet18();
  static ResNetShape resnet20();
  static ResNetShape resnet50();

 private:
  Form form_;
  ConvNorm stem_;
  std::vector<std::shared_ptr<ResidualBlock>> blocks_;
  torch::nn::Linear fc_{nullptr};
};

}  // namespace sgdph::lab::models
