#include <sgdph/detail/finite.h>

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

namespace sgdph::detail {

int64_t count_non_finite(const std::vector<at::Tensor>& tensors) {
  const torch::NoGradGuard no_grad;
  // Summed on their device and read once, so that a GPU is waited for once.
  at::Tensor total;
  for (const auto& tensor : tensors) {
    if (!tensor.defined()) continue;
    const auto sum = tensor.sum().to(at::kDouble);
    total = total.defined() ? total + sum.to(total.device()) : sum;
  }
  if (!total.defined() || std::isfinite(total.item<double>())) return 0;
  int64_t count = 0;
  for (const auto& tensor : tensors) {
    if (tensor.defined()) count += tensor.isfinite().logical_not().sum().item<int64_t>();
  }
  return count;
}

}  // namespace sgdph::detail
