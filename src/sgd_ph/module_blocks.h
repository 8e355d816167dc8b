#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

namespace sgdph::sgd_ph {

/// A parameter of a module and whether its module type makes it a block.
struct ModuleParameter {
  std::string name;
  at::Tensor parameter;
  bool block = false;
  std::string kind;
};

/// All parameters of a module, each once, in the order of `named_parameters()`, classified by the type of the module
/// that holds them: gain and shift of a norm layer, the gain of a weight-normalised layer and a convolution's bias are
/// blocks if they are 1-D.
std::vector<ModuleParameter> classify_parameters(const torch::nn::Module& module);

}  // namespace sgdph::sgd_ph
