#pragma once

#include "kernels/batch_norm_backward_job.h"

namespace sgdph::kernels {
namespace {

template <class T>
struct DoubleBackwardJob {
  static constexpr int kSums = 5;
  static constexpr int kCoefficients = 7;
  const DoubleBackwardPass<T>& pass;

  SGDPH_INLINE double centre(int64_t c) const { return pass.channels.mean[c]; }

  SGDPH_INLINE void add(
      int64_t at, int64_t byte, int count, const Double8& centre, std::array<Double8, kSums>& sums) const {
    const auto g = to_double(masked(pass.gy, pass.mask, at, byte, count));
    const auto x = to_double(load(pass.x + at, count)) - centre;
    sums[0] += g;
    sums[1] += g * x;
    if (pass.v == nullptr) return;
    const auto v = to_double(load(pass.v + at, count));
    sums[2] += v;
    sums[3] += v * x;
    sums[4] += v * g;
  }

  void finish(int64_t c, const std::array<double, kSums>& sums, std::array<double, kCoefficients>& out) const {
    const auto s = pass.channels.invstd[c];
    const auto gain = gain_of(pass.channels, c);
    const auto a = pass.a == nullptr ? 0 : pass.a[c];
    const auto b = pass.b == nullptr ? 0 : pass.b[c];
    // 1/M, or no sums at all where mean and variance are constants.
    const auto share = pass.training ? 1 / static_cast<double>(pass.layout.per_channel()) : 0;
    const auto g_sum = sums[0], g_xh = sums[1] * s, v_sum = sums[2], v_xh = sums[3] * s, v_g = sums[4];
    const auto k = v_g - share * (v_sum * g_sum + v_xh * g_xh);
    const auto h_sum = a * g_sum - gain * s * share * (v_sum * g_xh + g_sum * v_xh);
    const auto h_xh = a * g_xh - 2 * gain * s * share * v_xh * g_xh;
    if (pass.gain != nullptr) pass.gain[c] = s * k;
    const auto of_x_and_g = s * (a - gain * s * share * v_xh);
    out = {
        pass.channels.mean[c],
        gain * s,                                        // ggy: of v
        of_x_and_g,                                      // ggy: of x - mean; gx: of g
        b - gain * s * share * v_sum,                    // ggy: constant
        -s * gain * s * share * g_xh,                    // gx: of v
        -share * (s * s * h_xh + gain * k * s * s * s),  // gx: of x - mean
        -share * s * h_sum};                             // gx: constant
  }

  SGDPH_INLINE void apply(
      int64_t at, int64_t byte, int count, const std::array<Vector<T>, kCoefficients>& coefficients) const {
    const auto& [mean, ggy_v, ggy_x, ggy_1, gx_v, gx_x, gx_1] = coefficients;
    const auto x = load(pass.x + at, count) - mean;
    const auto v = pass.v == nullptr ? Vector<T>{} : load(pass.v + at, count);
    if (pass.gx != nullptr) {
      const auto g = masked(pass.gy, pass.mask, at, byte, count);
      store(pass.gx + at, v * gx_v + g * ggy_x + x * gx_x + gx_1, count);
    }
    if (pass.ggy != nullptr) {
      auto ggy = v * ggy_v + x * ggy_x + ggy_1;
      if (pass.r != nullptr) ggy += load(pass.r + at, count);
      if (pass.mask != nullptr) ggy = keep<T>(ggy, pass.mask[byte]);
      store(pass.ggy + at, ggy, count);
    }
  }
};

}  // namespace
}  // namespace sgdph::kernels
