#pragma once

#include <cstdint>

// The loops of batch norm over plain memory, for one instruction set each. What they compute is said in batch_norm.h.

namespace sgdph::kernels {

/// Value (o, c, i) lies at (o * channels + c) * inner + i. NCHW: N, C, H*W; channels last: N*H*W, C, 1.
struct Layout {
  int64_t outer = 0;
  int64_t channels = 0;
  int64_t inner = 0;

  int64_t per_channel() const { return outer * inner; }
  /// Masks are bits, eight to a byte, with each run of consecutive values starting a new byte.
  int64_t mask_bytes() const {
    return inner == 1 ? outer * ((channels + 7) / 8) : outer * channels * ((inner + 7) / 8);
  }
};

/// Per channel; null where there is none (gain 1, shift 0).
struct Channels {
  double* mean = nullptr;
  double* invstd = nullptr;
  const double* gain = nullptr;
  const double* shift = nullptr;
};

template <class T>
struct ForwardPass {
  Layout layout;
  Channels channels;
  const T* x = nullptr;
  const T* residual = nullptr;  ///< may be null
  T* y = nullptr;
  uint8_t* mask = nullptr;  ///< written if rectified; may be null
  bool rectified = false;
  bool training = false;  ///< writes mean, invstd and `variance` (biased)
  double eps = 0;
  double* variance = nullptr;
};

template <class T>
struct BackwardPass {
  Layout layout;
  Channels channels;
  const T* x = nullptr;
  const T* gy = nullptr;
  const uint8_t* mask = nullptr;  ///< null: not rectified
  bool training = false;
  T* gx = nullptr;         ///< may be null, or gy itself
  T* residual = nullptr;   ///< masked gy; may be null, or gy itself
  double* gain = nullptr;  ///< per channel
  double* shift = nullptr;
};

template <class T>
struct DoubleBackwardPass {
  Layout layout;
  Channels channels;
  const T* x = nullptr;
  const T* gy = nullptr;
  const uint8_t* mask = nullptr;
  bool training = false;
  // What comes in for gx, gain, shift and residual; null: nothing.
  const T* v = nullptr;
  const double* a = nullptr;
  const double* b = nullptr;
  const T* r = nullptr;
  // What goes out for gy, x and gain; null: not asked for.
  T* ggy = nullptr;
  T* gx = nullptr;
  double* gain = nullptr;
};

struct BatchNormKernels {
  void (*forward_float)(const ForwardPass<float>&);
  void (*forward_double)(const ForwardPass<double>&);
  void (*backward_float)(const BackwardPass<float>&);
  void (*backward_double)(const BackwardPass<double>&);
  void (*double_backward_float)(const DoubleBackwardPass<float>&);
  void (*double_backward_double)(const DoubleBackwardPass<double>&);

  void run(const ForwardPass<float>& pass) const { forward_float(pass); }
  void run(const ForwardPass<double>& pass) const { forward_double(pass); }
  void run(const BackwardPass<float>& pass) const { backward_float(pass); }
  void run(const BackwardPass<double>& pass) const { backward_double(pass); }
  void run(const DoubleBackwardPass<float>& pass) const { double_backward_float(pass); }
  void run(const DoubleBackwardPass<double>& pass) const { double_backward_double(pass); }
};

const BatchNormKernels& portable_batch_norm_kernels();
const BatchNormKernels& avx2_batch_norm_kernels();

}  // namespace sgdph::kernels
