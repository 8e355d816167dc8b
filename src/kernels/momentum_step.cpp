#include "kernels/momentum_step.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

namespace sgdph::kernels {
namespace {

/// Values a thread should have at least.
constexpr int64_t kGrain = 32768;

}  // namespace

bool momentum_step_takes(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& momentum) {
  const auto goes_along = [&](const at::Tensor& other) {
    return other.layout() == at::kStrided && other.device() == parameter.device() &&
           other.scalar_type() == parameter.scalar_type() && other.sizes() == parameter.sizes() &&
           other.strides() == parameter.strides();
  };
  return parameter.layout() == at::kStrided && parameter.device().is_cpu() &&
         (parameter.scalar_type() == at::kFloat || parameter.scalar_type() == at::kDouble) &&
         parameter.is_non_overlapping_and_dense() && goes_along(gradient) && goes_along(momentum);
}

void momentum_step(
    const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& momentum, const MomentumStep& step) {
  AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "sgdph::momentum_step", [&] {
    auto* const p = parameter.data_ptr<scalar_t>();
    const auto* const g = gradient.data_ptr<scalar_t>();
    auto* const m = momentum.data_ptr<scalar_t>();
    const auto keep = static_cast<scalar_t>(step.keep);
    const auto take = static_cast<scalar_t>(step.take);
    const auto decay = static_cast<scalar_t>(step.decay);
    const auto shrink = static_cast<scalar_t>(step.shrink);
    const auto rate = static_cast<scalar_t>(step.rate);
    at::parallel_for(0, parameter.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (auto i = begin; i < end; ++i) {
        m[i] = keep * m[i] + take * g[i] + decay * p[i];
        p[i] = shrink * p[i] - rate * m[i];
      }
    });
  });
  // Written behind autograd's back: graphs that saved the parameter must notice.
  parameter.unsafeGetTensorImpl()->bump_version();
}

}  // namespace sgdph::kernels
