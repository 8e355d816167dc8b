#pragma once

#include <ATen/core/Tensor.h>

#include <sstream>
#include <string>
#include <type_traits>

namespace sgdph::detail {

/// The key of a parameter in `torch::optim::Optimizer::state()`: the printed address in LibTorch 1.x, the address
/// itself in 2.x.
template <class Map>
typename Map::key_type state_key(const Map&, const at::Tensor& parameter) {
  if constexpr (std::is_same_v<typename Map::key_type, std::string>) {
    std::ostringstream text;
    text << parameter.unsafeGetTensorImpl();
    return text.str();
  } else {
    return parameter.unsafeGetTensorImpl();
  }
}

}  // namespace sgdph::detail
