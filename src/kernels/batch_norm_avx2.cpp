// The kernels for AVX2 and FMA: nothing of it may run before the processor was asked. Library headers come first, so
// that their inline functions, which the linker may share with other files, stay plain.
#include "kernels/batch_norm_kernels.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

// On other processors this is a second copy of the portable kernels, which nobody asks for.
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#define SGDPH_AVX2
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#endif

#include "kernels/batch_norm_jobs.h"

namespace sgdph::kernels {

const BatchNormKernels& avx2_batch_norm_kernels() {
  return kKernels;
}

}  // namespace sgdph::kernels

#ifdef SGDPH_AVX2
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
