#pragma once

#include "kernels/simd.h"

#include <cstdint>
#include <cstring>

#ifdef SGDPH_AVX2
#include <immintrin.h>
#endif

// Eight values at a time, by the compiler's vector types of 32 bytes: the same source is AVX2 code where it is compiled
// for that (SGDPH_AVX2), and whatever the baseline has elsewhere. Everything is in an unnamed namespace, because the
// two must not be merged.

namespace sgdph::kernels {
namespace {

constexpr int kLanes = 8;

using Float4 = float __attribute__((vector_size(16)));
using Float8 = float __attribute__((vector_size(32)));
using Int8 = int32_t __attribute__((vector_size(32)));
using Double4 = double __attribute__((vector_size(32)));
using Long4 = int64_t __attribute__((vector_size(32)));

/// In two registers: a vector type of 64 bytes would live in memory.
struct Double8 {
  Double4 low, high;
};
SGDPH_INLINE Double8 operator+(const Double8& a, const Double8& b) {
  return {a.low + b.low, a.high + b.high};
}
SGDPH_INLINE Double8 operator-(const Double8& a, const Double8& b) {
  return {a.low - b.low, a.high - b.high};
}
SGDPH_INLINE Double8 operator*(const Double8& a, const Double8& b) {
  return {a.low * b.low, a.high * b.high};
}
SGDPH_INLINE Double8& operator+=(Double8& a, const Double8& b) {
  return a = a + b;
}

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  using Type = Float8;
};
template <>
struct VectorOf<double> {
  using Type = Double8;
};
template <class T>
using Vector = typename VectorOf<T>::Type;

/// The first `count` values at `from`, zeros after them.
template <class T>
SGDPH_INLINE Vector<T> load(const T* from, int count) {
  Vector<T> values{};
  if (count == kLanes) {
    std::memcpy(&values, from, sizeof(values));
  } else {
    std::memcpy(&values, from, static_cast<size_t>(count) * sizeof(T));
  }
  return values;
}

template <class T>
SGDPH_INLINE void store(T* to, const Vector<T>& values, int count) {
  if (count == kLanes) {
    std::memcpy(to, &values, sizeof(values));
  } else {
    std::memcpy(to, &values, static_cast<size_t>(count) * sizeof(T));
  }
}

SGDPH_INLINE Double8 to_double(const Float8& values) {
#ifdef SGDPH_AVX2
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(values)), _mm256_cvtps_pd(_mm256_extractf128_ps(values, 1))};
#else
  Float4 halves[2];
  std::memcpy(halves, &values, sizeof(halves));
  return {__builtin_convertvector(halves[0], Double4), __builtin_convertvector(halves[1], Double4)};
#endif
}
SGDPH_INLINE Double8 to_double(const Double8& values) {
  return values;
}

template <class T>
SGDPH_INLINE Vector<T> broadcast(double value);
template <>
SGDPH_INLINE Float8 broadcast<float>(double value) {
  return Float8{} + static_cast<float>(value);
}
template <>
SGDPH_INLINE Double8 broadcast<double>(double value) {
  return {Double4{} + value, Double4{} + value};
}

SGDPH_INLINE double sum(const Double8& values) {
  const auto& [low, high] = values;
  return ((low[0] + low[1]) + (low[2] + low[3])) + ((high[0] + high[1]) + (high[2] + high[3]));
}

}  // namespace
}  // namespace sgdph::kernels
