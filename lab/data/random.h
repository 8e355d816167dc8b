#pragma once

#include <cstdint>

namespace sgdph::lab {

/// A small counter-based generator (SplitMix64): a stream is a pure function of its seeds, so that an augmentation
/// depends on seed, epoch and image only and never on the number of workers.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0, uint64_t substream = 0)
      : state_(mix(mix(mix(seed) + stream) + substream)) {}

  uint64_t bits() {
    state_ += kGolden;
    return mix(state_);
  }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in [0, n); the bias of a 64-bit remainder is below n / 2^64.
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }

 private:
  static constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
  static uint64_t mix(uint64_t x) {
    x += kGolden;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

  uint64_t state_;
};

}  // namespace sgdph::lab
