#pragma once

#include "kernels/batch_norm_backward_job.h"
#include "kernels/batch_norm_double_backward_job.h"
#include "kernels/batch_norm_forward_job.h"

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
