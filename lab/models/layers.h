#pragma once

#include "models/image_model.h"
#include "models/models.h"

#include <sgdph/nn.h>
#include <sgdph/weight_norm.h>

// instancenorm.h of LibTorch 1.13 does not include what it needs.
#include <torch/nn/functional/instancenorm.h>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/normalization.h>

#include <string>
#include <variant>

namespace sgdph::lab::models {

/// What a convolution is followed by, and whose layers are used.
struct Layers {
  Norm norm = Norm::Batch;
  Kernels kernels = Kernels::Fast;
  bool rectified = true;
};

/// Whether a layer follows the convolution. Where none does, the convolution needs a bias.
bool has_norm_layer(Norm norm);

/// Groups of a group norm over `channels`: the largest divisor up to 32, which is the number of Wu & He 2018.
int64_t norm_groups(int64_t channels);

/// `channels` times the width multiplier, rounded; a UserError if none is left.
int64_t scaled_channels(int64_t channels, double width);

/// A convolution, the norm layer after it, if the option has one, and the rectifier after that, if asked for. It is no
/// module of its own: both layers are registered in `parent`, so that parameter names are torchvision's. The
/// convolution is initialised as torchvision's networks are: normal with variance 2 / fan_out (He et al. 2015), bias 0.
/// With Norm::Weight it is then normalised, which keeps its function: from one seed, Norm::None and Norm::Weight give
/// the same network.
class ConvNorm {
 public:
  ConvNorm(
      torch::nn::Module& parent, const std::string& conv_name, const std::string& norm_name,
      const torch::nn::Conv2dOptions& options, Layers layers);

  /// `residual`, if it is defined, is added before the rectifier.
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& residual = {});

 private:
  bool rectified_;
  std::variant<torch::nn::Conv2d, nn::Conv2d, WeightNormConv2d> conv_{torch::nn::Conv2d(nullptr)};
  std::variant<
      std::monostate, torch::nn::BatchNorm2d, nn::BatchNorm2d, nn::BatchNormReLU2d, torch::nn::GroupNorm,
      torch::nn::InstanceNorm2d>
      norm_;
};

/// relu(x) in the memory of x, which must be a fresh result that no backward pass reads. A view (instance norm returns
/// one) is left alone: autograd would record a copy for it.
at::Tensor relu_over(const at::Tensor& x);

}  // namespace sgdph::lab::models
