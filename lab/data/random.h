#pragma once

#include <sgdph/detail/mix.h>

#include <cstdint>

namespace sgdph::lab::data {

/// A small counter-based generator (SplitMix64): a stream is a pure function of its seeds, so that an augmentation
/// depends on seed, epoch and image only and never on the number of workers.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0, uint64_t substream = 0)
      : state_(detail::mix(detail::mix(detail::mix(seed) + stream) + substream)) {}

  uint64_t bits() {
    state_ += detail::kGolden;
    return detail::mix(state_);
  }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in [0, n); the bias of a 64-bit remainder is below n / 2^64.
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }

 private:
  uint64_t state_;
};

}  // namespace sgdph::lab::data
