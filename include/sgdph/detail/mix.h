#pragma once

#include <cstdint>

namespace sgdph::detail {

/// The step between the states of SplitMix64: 2^64 over the golden ratio, odd.
inline constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

/// One draw of SplitMix64 (Steele, Lea, Flood 2014) from the state `x`: neighbouring numbers become unrelated ones.
inline uint64_t mix(uint64_t x) {
  x += kGolden;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace sgdph::detail
