#pragma once

#include "kernels/channel_loops.h"

#include <cmath>

// Forward, backward and double backward of batch norm, as jobs for the walks over channels.
//
// M values per channel, s = 1/sqrt(var + eps), xh = (x - mean)*s, g = gy where the rectifier passed (else 0),
// B = sum g, G = sum g*xh. With v for gx, a for the gain's gradient, b for the shift's and r for the residual's coming
// in: V = sum v, Vh = sum v*xh, Q = sum v*g, K = Q - V*B/M - Vh*G/M,
//   ggy = passed( gain*s*(v - V/M - xh*Vh/M) + a*xh + b + r )
//   h   = a*g - (gain*s/M)*(v*G + g*Vh)
//   gx  = s*(h - sum(h)/M - xh*sum(h*xh)/M) - gain*K*s^2*xh/M
//   gain's = s*K.
// In evaluation mode mean and s are constants and the terms of the sums vanish.

namespace sgdph::kernels {
namespace {

SGDPH_INLINE double gain_of(const Channels& channels, int64_t c) {
  return channels.gain == nullptr ? 1 : channels.gain[c];
}

/// g: what came in, where the rectifier passed.
template <class T>
SGDPH_INLINE Vector<T> masked(const T* gy, const uint8_t* mask, int64_t at, int64_t byte, int count) {
  const auto values = load(gy + at, count);
  return mask == nullptr ? values : keep<T>(values, mask[byte]);
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
      pass.variance[c] = std::max(0., sums[1] / count - offset * offset);
      // Not hidden by the maximum above.
      if (std::isnan(sums[1])) pass.variance[c] = sums[1];
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

template <class T>
void forward(const ForwardPass<T>& pass) {
  run_job<T>(ForwardJob<T>{pass}, pass.layout, pass.training, true);
}

template <class T>
void backward(const BackwardPass<T>& pass) {
  const bool sums = pass.gain != nullptr || pass.shift != nullptr || (pass.training && pass.gx != nullptr);
  run_job<T>(BackwardJob<T>{pass}, pass.layout, sums, pass.gx != nullptr || pass.residual != nullptr);
}

template <class T>
void double_backward(const DoubleBackwardPass<T>& pass) {
  const bool sums = pass.training || pass.gain != nullptr;
  run_job<T>(DoubleBackwardJob<T>{pass}, pass.layout, sums, pass.ggy != nullptr || pass.gx != nullptr);
}

constexpr BatchNormKernels kKernels{forward<float>,   forward<double>,        backward<float>,
                                    backward<double>, double_backward<float>, double_backward<double>};

}  // namespace
}  // namespace sgdph::kernels
