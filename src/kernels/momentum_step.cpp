#include "kernels/momentum_step.h"

#include "kernels/simd.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

namespace sgdph::kernels {
namespace {

/// Values a thread should have at least.
constexpr int64_t kGrain = 32768;

template <class T>
struct Weights {
  T keep, take, decay, shrink, rate;
};

// The loops are apart from what calls them, their weights are copies and their pointers are restricted: a store could
// otherwise change what the next value needs, and the compiler would go value by value. Those for AVX2 are the same
// with longer vectors, and have the same bits, since nothing is fused.

template <class T>
SGDPH_INLINE void with_momentum(T* __restrict p, const T* __restrict g, T* __restrict m, int64_t count, Weights<T> w) {
  const auto step = [w](T& value, T gradient, T& momentum) {
    momentum = w.keep * momentum + w.take * gradient + w.decay * value;
    value = w.shrink * value - w.rate * momentum;
  };
  // A cache line at a time, asked for ahead: with three streams a processor alone looks not far enough.
  constexpr int64_t kLine = 64 / sizeof(T);
  constexpr int64_t kAhead = 16 * kLine;
  int64_t at = 0;
  for (; at + kLine <= count; at += kLine) {
    __builtin_prefetch(p + at + kAhead);
    __builtin_prefetch(g + at + kAhead);
    __builtin_prefetch(m + at + kAhead);
    for (int64_t i = at; i < at + kLine; ++i) step(p[i], g[i], m[i]);
  }
  for (; at < count; ++at) step(p[at], g[at], m[at]);
}

template <class T>
SGDPH_INLINE void without_momentum(T* __restrict p, const T* __restrict g, int64_t count, Weights<T> w) {
  for (int64_t i = 0; i < count; ++i) p[i] = w.shrink * p[i] - w.rate * (w.take * g[i] + w.decay * p[i]);
}

template <class T>
SGDPH_INLINE void run(T* p, const T* g, T* m, int64_t count, const Weights<T>& weights) {
  if (m != nullptr) {
    with_momentum(p, g, m, count, weights);
  } else {
    without_momentum(p, g, count, weights);
  }
}

template <class T>
void run_portable(T* p, const T* g, T* m, int64_t count, const Weights<T>& weights) {
  run(p, g, m, count, weights);
}

template <class T>
SGDPH_FOR_AVX2 void run_avx2(T* p, const T* g, T* m, int64_t count, const Weights<T>& weights) {
  run(p, g, m, count, weights);
}

bool are_apart(const at::Tensor& a, const at::Tensor& b) {
  const auto* const first = static_cast<const char*>(a.data_ptr());
  const auto* const second = static_cast<const char*>(b.data_ptr());
  return first + a.nbytes() <= second || second + b.nbytes() <= first;
}

}  // namespace

bool momentum_step_takes(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& momentum) {
  const auto goes_along = [&](const at::Tensor& other) {
    return other.layout() == at::kStrided && other.device() == parameter.device() &&
           other.scalar_type() == parameter.scalar_type() && other.sizes() == parameter.sizes() &&
           other.strides() == parameter.strides() && are_apart(parameter, other);
  };
  return parameter.layout() == at::kStrided && parameter.device().is_cpu() &&
         (parameter.scalar_type() == at::kFloat || parameter.scalar_type() == at::kDouble) &&
         parameter.is_non_overlapping_and_dense() && goes_along(gradient) &&
         (!momentum.defined() || (goes_along(momentum) && are_apart(gradient, momentum)));
}

void momentum_step(
    const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& momentum, const MomentumStep& step) {
  TORCH_INTERNAL_ASSERT_DEBUG_ONLY(momentum.defined() || step.keep == 0);
  AT_DISPATCH_FLOATING_TYPES(parameter.scalar_type(), "sgdph::momentum_step", [&] {
    auto* const p = parameter.data_ptr<scalar_t>();
    const auto* const g = gradient.data_ptr<scalar_t>();
    auto* const m = momentum.defined() ? momentum.data_ptr<scalar_t>() : nullptr;
    const Weights<scalar_t> weights{
        static_cast<scalar_t>(step.keep), static_cast<scalar_t>(step.take), static_cast<scalar_t>(step.decay),
        static_cast<scalar_t>(step.shrink), static_cast<scalar_t>(step.rate)};
    const auto kernel = simd() == Simd::Avx2 ? run_avx2<scalar_t> : run_portable<scalar_t>;
    at::parallel_for(0, parameter.numel(), kGrain, [&](int64_t begin, int64_t end) {
      kernel(p + begin, g + begin, m == nullptr ? m : m + begin, end - begin, weights);
    });
  });
  // Written behind autograd's back: graphs that saved the parameter must notice.
  parameter.unsafeGetTensorImpl()->bump_version();
}

}  // namespace sgdph::kernels
