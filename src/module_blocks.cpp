#include "module_blocks.h"

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

namespace sgdph {
namespace {

namespace nn = torch::nn;

template <class... Types>
bool is_any(const nn::Module& module) {
  return ((dynamic_cast<const Types*>(&module) != nullptr) || ...);
}

bool is_norm(const nn::Module& module) {
  return is_any<
      nn::BatchNorm1dImpl, nn::BatchNorm2dImpl, nn::BatchNorm3dImpl, nn::InstanceNorm1dImpl, nn::InstanceNorm2dImpl,
      nn::InstanceNorm3dImpl, nn::GroupNormImpl, nn::LayerNormImpl>(module);
}

bool is_convolution(const nn::Module& module) {
  return is_any<
      nn::Conv1dImpl, nn::Conv2dImpl, nn::Conv3dImpl, nn::ConvTranspose1dImpl, nn::ConvTranspose2dImpl,
      nn::ConvTranspose3dImpl, WeightNormConv2dImpl>(module);
}

bool is_linear(const nn::Module& module) {
  return is_any<nn::LinearImpl, nn::BilinearImpl, WeightNormLinearImpl>(module);
}

/// What a parameter of this module is, and whether that makes it a block.
std::pair<std::string, bool> classify(const nn::Module& module, const std::string& name, const at::Tensor& parameter) {
  if (parameter.dim() != 1) return {std::to_string(parameter.dim()) + "-D", false};
  if (is_norm(module)) return {name == "bias" ? "norm shift" : "norm gain", true};
  if (is_any<WeightNormConv2dImpl, WeightNormLinearImpl>(module) && name == "gain") return {"weight-norm gain", true};
  if (is_convolution(module) && name == "bias") return {"convolution bias", true};
  if (is_linear(module) && name == "bias") return {"linear bias", false};
  return {"1-D, of a module type without channels (" + module.name() + ")", false};
}

void collect(
    const nn::Module& module, const std::string& prefix, std::unordered_set<const at::TensorImpl*>& seen,
    std::vector<ModuleParameter>& found) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    if (!seen.insert(item.value().unsafeGetTensorImpl()).second) continue;
    auto [kind, block] = classify(module, item.key(), item.value());
    found.push_back({prefix + item.key(), item.value(), block, std::move(kind)});
  }
  for (const auto& child : module.named_children()) collect(*child.value(), prefix + child.key() + ".", seen, found);
}

}  // namespace

std::vector<ModuleParameter> classify_parameters(const nn::Module& module) {
  std::vector<ModuleParameter> found;
  std::unordered_set<const at::TensorImpl*> seen;
  collect(module, "", seen, found);
  return found;
}

}  // namespace sgdph
