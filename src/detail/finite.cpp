#include <sgdph/detail/finite.h>

#include "kernels/all_finite.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

namespace sgdph::detail {
namespace {

int64_t count_one_by_one(const at::Tensor& tensor) {
  return tensor.isfinite().logical_not().sum().item<int64_t>();
}

/// Half types overflow in a sum of usual values.
at::ScalarType sum_type(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

}  // namespace

int64_t count_non_finite(const std::vector<at::Tensor>& tensors) {
  const torch::NoGradGuard no_grad;
  int64_t count = 0;
  std::vector<at::Tensor> elsewhere;
  // The last ones first: the caller goes on with the first ones, which are then in the cache.
  for (auto next = tensors.rbegin(); next != tensors.rend(); ++next) {
    const auto& tensor = *next;
    if (!tensor.defined() || !(tensor.is_floating_point() || tensor.is_complex())) continue;
    const auto values = tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
    if (!kernels::all_finite_takes(values)) {
      elsewhere.push_back(values);
    } else if (!kernels::all_finite(values)) {
      count += count_one_by_one(values);
    }
  }
  // Summed on their device and read once, so that a GPU is waited for once.
  at::Tensor total;
  for (const auto& values : elsewhere) {
    const auto sum = values.sum(sum_type(values));
    total = total.defined() ? total + sum.to(total.device()) : sum;
  }
  if (!total.defined() || std::isfinite(total.item<double>())) return count;
  for (const auto& values : elsewhere) count += count_one_by_one(values);
  return count;
}

}  // namespace sgdph::detail
