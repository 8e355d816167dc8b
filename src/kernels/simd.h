#pragma once

// Which vector instructions the kernels use, decided when they run.

namespace sgdph::kernels {

enum class Simd { Portable, Avx2 };
/// The best this processor has, unless `use_simd` said otherwise.
Simd simd();
/// For tests and benchmarks. Throws if the processor cannot.
void use_simd(Simd simd);

}  // namespace sgdph::kernels

/// What goes into each of the functions made from one source.
#define SGDPH_INLINE inline __attribute__((always_inline))

/// A function that may be called where `simd()` is Avx2 only. Without FMA: fused operations have other bits.
#if defined(__x86_64__) || defined(__i386__)
#define SGDPH_FOR_AVX2 __attribute__((target("avx2")))
#else
#define SGDPH_FOR_AVX2
#endif
