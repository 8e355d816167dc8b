#pragma once

#include "kernels/vector.h"

// Some lanes of a vector: the first few, or those a rectifier passed, as bits.

namespace sgdph::kernels {
namespace {

/// Zero in all but the first `count` lanes. (Lanes are picked in memory: GCC 12's bounds check miscompiles a vector's
/// subscript that is not a constant.)
SGDPH_INLINE Double8 first(const Double8& values, int count) {
  if (count == kLanes) return values;
  Double8 kept{};
  std::memcpy(&kept, &values, static_cast<size_t>(count) * sizeof(double));
  return kept;
}

/// Zero in the lanes whose bit is 0.
template <class T>
SGDPH_INLINE Vector<T> keep(const Vector<T>& values, uint8_t bits);
template <>
SGDPH_INLINE Float8 keep<float>(const Float8& values, uint8_t bits) {
  const Int8 lane_bits{1, 2, 4, 8, 16, 32, 64, 128};
  const Int8 mask = ((Int8{} + bits) & lane_bits) == lane_bits;
  return reinterpret_cast<Float8>(reinterpret_cast<Int8>(values) & mask);
}
template <>
SGDPH_INLINE Double8 keep<double>(const Double8& values, uint8_t bits) {
  const Long4 lane_bits{1, 2, 4, 8};
  const auto half = [&](const Double4& part, int part_bits) {
    const Long4 mask = ((Long4{} + part_bits) & lane_bits) == lane_bits;
    return reinterpret_cast<Double4>(reinterpret_cast<Long4>(part) & mask);
  };
  return {half(values.low, bits & 15), half(values.high, bits >> 4)};
}

/// A bit for each lane that is above zero, or not a number: what a rectifier passes on.
SGDPH_INLINE uint8_t passed(const Float8& values) {
  const Int8 stopped = values <= 0;
#ifdef SGDPH_AVX2
  return static_cast<uint8_t>(~_mm256_movemask_ps(reinterpret_cast<__m256>(stopped)));
#else
  int32_t lanes[kLanes];
  std::memcpy(lanes, &stopped, sizeof(lanes));
  unsigned bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= (lanes[i] == 0 ? 1U : 0U) << i;
  return static_cast<uint8_t>(bits);
#endif
}
SGDPH_INLINE uint8_t passed(const Double8& values) {
  double lanes[kLanes];
  std::memcpy(lanes, &values, sizeof(lanes));
  unsigned bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= (lanes[i] <= 0 ? 0U : 1U) << i;
  return static_cast<uint8_t>(bits);
}

}  // namespace
}  // namespace sgdph::kernels
