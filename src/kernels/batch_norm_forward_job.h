#pragma once

#include "kernels/channel_loops.h"

#include <cmath>

namespace sgdph::kernels {
namespace {

SGDPH_INLINE double gain_of(const Channels& channels, int64_t c) {
  return channels.gain == nullptr ? 1 : channels.gain[c];
}

template <class T>
struct ForwardJob {
  static constexpr int kSums = 2;
  static constexpr int kCoefficients = 3;
  const ForwardPass<T>& pass;

  /// The channel's first value: variance is computed from differences, not from large squares.
  SGDPH_INLINE double centre(int64_t c) const { return pass.x[c * pass.layout.inner]; }

  SGDPH_INLINE void add(
      int64_t at, int64_t /*byte*/, int count, const Double8& centre, std::array<Double8, kSums>& sums) const {
    const auto difference = first(to_double(load(pass.x + at, count)) - centre, count);
    sums[0] += difference;
    sums[1] += difference * difference;
  }

  void finish(int64_t c, const std::array<double, kSums>& sums, std::array<double, kCoefficients>& out) const {
    const auto& channels = pass.channels;
    if (pass.training) {
      const auto count = static_cast<double>(pass.layout.per_channel());
      const auto offset = sums[0] / count;
      channels.mean[c] = centre(c) + offset;
      const auto variance = sums[1] / count - offset * offset;
      pass.variance[c] = variance < 0 ? 0 : variance;  // not a maximum, which would hide what is not a number
      channels.invstd[c] = 1 / std::sqrt(pass.variance[c] + pass.eps);
    }
    out = {
        channels.mean[c], gain_of(channels, c) * channels.invstd[c], channels.shift == nullptr ? 0 : channels.shift[c]};
  }

  SGDPH_INLINE void apply(
      int64_t at, int64_t byte, int count, const std::array<Vector<T>, kCoefficients>& coefficients) const {
    const auto& [mean, scale, shift] = coefficients;
    auto y = (load(pass.x + at, count) - mean) * scale + shift;
    if (pass.residual != nullptr) y += load(pass.residual + at, count);
    if (pass.rectified) {
      const auto bits = passed(y);
      y = keep<T>(y, bits);
      if (pass.mask != nullptr) pass.mask[byte] = bits;
    }
    store(pass.y + at, y, count);
  }
};

}  // namespace
}  // namespace sgdph::kernels
