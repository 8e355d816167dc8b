#include "kernels/simd.h"

#include <c10/util/Exception.h>

#include <atomic>

namespace sgdph::kernels {
namespace {

bool has_avx2() {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
#else
  return false;
#endif
}

std::atomic<Simd>& chosen_simd() {
  static std::atomic<Simd> chosen{has_avx2() ? Simd::Avx2 : Simd::Portable};
  return chosen;
}

}  // namespace

Simd simd() {
  return chosen_simd();
}

void use_simd(Simd simd) {
  TORCH_CHECK(simd != Simd::Avx2 || has_avx2(), "sgdph: this processor has no AVX2");
  chosen_simd() = simd;
}

}  // namespace sgdph::kernels
