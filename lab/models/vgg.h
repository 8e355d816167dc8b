#pragma once

#include "models/layers.h"

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <vector>

namespace sgdph::lab::models {

/// VGG11 and VGG19, configurations A and E of "Very Deep Convolutional Networks for Large-Scale Image Recognition",
/// Simonyan & Zisserman 2015, as torchvision has them, parameter names included: 3x3 convolutions with bias also before
/// a norm layer, five max-pools, three linear layers with dropout. The CIFAR form has one linear layer after an average
/// over what is left of the image; its max-pools round up, so that 28x28 keeps pixels to the end (for 32x32 nothing
/// changes). The width multiplies the hidden units of the linear layers too.
class VGG : public ImageModel {
 public:
  /// Channels of the convolutions stage by stage; a max-pool ends each stage.
  using Shape = std::vector<std::vector<int64_t>>;

  VGG(const Shape& shape, const ModelOptions& options);
  at::Tensor forward(at::Tensor images) override;

  static Shape vgg11();
  static Shape vgg19();

 private:
  Form form_;
  std::vector<std::vector<ConvNorm>> stages_;
  std::vector<torch::nn::Linear> linears_;
  std::vector<torch::nn::Dropout> dropouts_;  ///< after each linear layer but the last
};

}  // namespace sgdph::lab::models
