#include "sgd_ph/module_blocks.h"

#include <sgdph/nn/modules.h>
#include <sgdph/weight_norm.h>

// instancenorm.h of LibTorch 1.13 does not include what it needs.
#include <torch/nn/functional/instancenorm.h>

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <unordered_set>

namespace sgdph::sgd_ph {
namespace {

template <class... Types>
bool is_any(const torch::nn::Module& module) {
  return ((dynamic_cast<const Types*>(&module) != nullptr) || ...);
}

bool is_norm(const torch::nn::Module& module) {
  return is_any<
      torch::nn::BatchNorm1dImpl, torch::nn::BatchNorm2dImpl, torch::nn::BatchNorm3dImpl, torch::nn::InstanceNorm1dImpl,
      torch::nn::InstanceNorm2dImpl, torch::nn::InstanceNorm3dImpl, torch::nn::GroupNormImpl, torch::nn::LayerNormImpl,
      sgdph::nn::BatchNorm2dImpl, sgdph::nn::BatchNormReLU2dImpl>(module);
}

bool is_convolution(const torch::nn::Module& module) {
  return is_any<
      torch::nn::Conv1dImpl, torch::nn::Conv2dImpl, torch::nn::Conv3dImpl, torch::nn::ConvTranspose1dImpl,
      torch::nn::ConvTranspose2dImpl, torch::nn::ConvTranspose3dImpl, WeightNormConv2dImpl>(module);
}

bool is_linear(const torch::nn::Module& module) {
  return is_any<torch::nn::LinearImpl, torch::nn::BilinearImpl, WeightNormLinearImpl>(module);
}

/// What a parameter of this module is, and whether that makes it a block.
std::pair<std::string, bool> classify(
    const torch::nn::Module& module, const std::string& name, const at::Tensor& parameter) {
  if (parameter.dim() != 1) return {std::to_string(parameter.dim()) + "-D", false};
  if (is_norm(module)) return {name == "bias" ? "norm shift" : "norm gain", true};
  if (is_any<WeightNormConv2dImpl, WeightNormLinearImpl>(module) && name == "gain") return {"weight-norm gain", true};
  if (is_convolution(module) && name == "bias") return {"convolution bias", true};
  if (is_linear(module) && name == "bias") return {"linear bias", false};
  return {"1-D, of a module type without channels (" + module.name() + ")", false};
}

void collect(
    const torch::nn::Module& module, const std::string& prefix, std::unordered_set<const at::TensorImpl*>& seen,
    std::vector<ModuleParameter>& found) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    if (!seen.insert(item.value().unsafeGetTensorImpl()).second) continue;
    auto [kind, block] = classify(module, item.key(), item.value());
    found.push_back({prefix + item.key(), item.value(), block, std::move(kind)});
  }
  for (const auto& child : module.named_children()) collect(*child.value(), prefix + child.key() + ".", seen, found);
}

}  // namespace

std::vector<ModuleParameter> classify_parameters(const torch::nn::Module& module) {
  std::vector<ModuleParameter> found;
  std::unordered_set<const at::TensorImpl*> seen;
  collect(module, "", seen, found);
  return found;
}

}  // namespace sgdph::sgd_ph
