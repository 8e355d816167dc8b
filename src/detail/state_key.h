#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/string_utils.h>

#include <string>
#include <type_traits>

namespace sgdph::detail {

/// The key of a parameter in `torch::optim::Optimizer::state()`: a string up to LibTorch 2.0, a pointer since.
template <class Map>
typename Map::key_type state_key(const Map&, const at::Tensor& parameter) {
  if constexpr (std::is_same_v<typename Map::key_type, std::string>) {
    return c10::guts::to_string(parameter.unsafeGetTensorImpl());
  } else {
    return parameter.unsafeGetTensorImpl();
  }
}

}  // namespace sgdph::detail
