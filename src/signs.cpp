#include "signs.h"

#include <sgdph/detail/mix.h>

#include <ATen/core/PhiloxRNGEngine.h>
#include <torch/types.h>

namespace sgdph {

using detail::mix;

at::Tensor rademacher_like(const at::Tensor& parameter, const ProbePlace& place) {
  at::Philox4_32 random(mix(mix(place.seed) + place.stream), mix(mix(place.parameter) + place.count));
  auto signs = at::empty({parameter.numel()}, at::kChar);
  auto* sign = signs.data_ptr<int8_t>();
  const auto count = parameter.numel();
  for (int64_t i = 0; i < count;) {
    for (uint32_t bits = random(), k = 0; k < 32 && i < count; ++k, ++i, bits >>= 1) {
      sign[i] = (bits & 1U) != 0 ? 1 : -1;
    }
  }
  return signs.view(parameter.sizes()).to(parameter.device(), parameter.scalar_type());
}

at::Tensor hadamard_row_like(const at::Tensor& parameter, int64_t row, int64_t cycle) {
  auto signs = at::empty(parameter.sizes(), at::kChar);
  auto* sign = signs.data_ptr<int8_t>();
  for (int64_t i = 0; i < parameter.numel(); ++i) {
    bool odd = false;
    for (int64_t common = row & (i % cycle); common != 0; common &= common - 1) odd = !odd;
    sign[i] = odd ? -1 : 1;
  }
  return signs.to(parameter.device(), parameter.scalar_type());
}

}  // namespace sgdph
