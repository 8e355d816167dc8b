#pragma once

#include <sgdph/api.h>

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace torch::nn {
class Module;
}

namespace sgdph {

/// What a parameter is to be: a block (second-order), first-order, or what the built-in rules say.
enum class Role { Default, Block, FirstOrder };

/// A parameter as a classifier sees it.
struct ParameterInfo {
  std::string name;  ///< as in `named_parameters()`: "layer1.0.bn1.weight"
  at::Tensor parameter;
  const torch::nn::Module* module = nullptr;  ///< that holds it; null if unknown
  std::string local_name;                     ///< within the module: "weight"
  Role role = Role::Default;                  ///< what it would be without the classifier
};

/// Says what a parameter is to be; `Role::Default` leaves it to the built-in rules.
using Classifier = std::function<Role(const ParameterInfo&)>;

/// Chooses parameters.
using Selector = std::function<bool(const ParameterInfo&)>;

/// Gains and shifts of norm layers, whatever their shape: of LibTorch's, of ours, and of types named like one.
SGDPH_API Selector norms();

/// Whether all sizes but one are 1: [C], or [C, 1, 1] as of a LayerScale.
SGDPH_API bool is_channel_wise(const at::Tensor& parameter);

/// Channel-wise parameters whose names match one of the patterns are blocks: `*` stands for any text, dots included,
/// `?` for one letter, as in "*.norm?.weight".
SGDPH_API Classifier blocks_named(std::vector<std::string> globs);
/// Parameters whose names match one of the patterns are first-order.
SGDPH_API Classifier first_order_named(std::vector<std::string> globs);

/// What the first one says, or where it leaves it to the rules, the second.
SGDPH_API Classifier either(Classifier first, Classifier second);

namespace detail {

/// `Impl` of a module holder, else the type itself.
template <class Module, class = void>
struct ModuleType {
  using Type = Module;
};
template <class Module>
struct ModuleType<Module, std::void_t<typename Module::ContainedType>> {
  using Type = typename Module::ContainedType;
};

}  // namespace detail

/// Channel-wise parameters held by modules of this type are blocks: `blocks_of<LayerScaleImpl>()`.
template <class Module>
Classifier blocks_of() {
  return [](const ParameterInfo& info) {
    const auto* module = dynamic_cast<const typename detail::ModuleType<Module>::Type*>(info.module);
    return module != nullptr && is_channel_wise(info.parameter) ? Role::Block : Role::Default;
  };
}

}  // namespace sgdph
