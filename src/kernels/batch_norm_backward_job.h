#pragma once

#include "kernels/batch_norm_forward_job.h"

namespace sgdph::kernels {
namespace {

/// g: what came in, where the rectifier passed.
template <class T>
SGDPH_INLINE Vector<T> masked(const T* gy, const uint8_t* mask, int64_t at, int64_t byte, int count) {
  const auto values = load(gy + at, count);
  return mask == nullptr ? values : keep<T>(values, mask[byte]);
}

template <class T>
struct BackwardJob {
  static constexpr int kSums = 2;
  static constexpr int kCoefficients = 4;
  const BackwardPass<T>& pass;

  SGDPH_INLINE double centre(int64_t c) const { return pass.channels.mean[c]; }

  SGDPH_INLINE void add(
      int64_t at, int64_t byte, int count, const Double8& centre, std::array<Double8, kSums>& sums) const {
    const auto g = to_double(masked(pass.gy, pass.mask, at, byte, count));
    sums[0] += g;
    sums[1] += g * (to_double(load(pass.x + at, count)) - centre);
  }

  void finish(int64_t c, const std::array<double, kSums>& sums, std::array<double, kCoefficients>& out) const {
    const auto s = pass.channels.invstd[c];
    const auto scale = gain_of(pass.channels, c) * s;
    const auto shift_gradient = sums[0];
    const auto gain_gradient = sums[1] * s;
    if (pass.shift != nullptr) pass.shift[c] = shift_gradient;
    if (pass.gain != nullptr) pass.gain[c] = gain_gradient;
    const auto share = pass.training ? scale / static_cast<double>(pass.layout.per_channel()) : 0;
    out = {pass.channels.mean[c], scale, -share * s * gain_gradient, -share * shift_gradient};
  }

  SGDPH_INLINE void apply(
      int64_t at, int64_t byte, int count, const std::array<Vector<T>, kCoefficients>& coefficients) const {
    const auto& [mean, of_g, of_x, constant] = coefficients;
    const auto g = masked(pass.gy, pass.mask, at, byte, count);
    if (pass.gx != nullptr) {
      auto gx = g * of_g;
      if (pass.training) gx += (load(pass.x + at, count) - mean) * of_x + constant;
      store(pass.gx + at, gx, count);
    }
    if (pass.residual != nullptr) store(pass.residual + at, g, count);
  }
};

}  // namespace
}  // namespace sgdph::kernels
