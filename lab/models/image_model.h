#pragma once

#include <torch/nn/module.h>

namespace sgdph::lab::models {

/// A network for images: its forward maps [n, channels, height, width] to class scores.
class ImageModel : public torch::nn::Module {
 public:
  virtual at::Tensor forward(at::Tensor images) = 0;
};

}  // namespace sgdph::lab::models
