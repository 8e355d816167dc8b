#include "kernels/batch_norm.h"

#include "kernels/batch_norm_kernels.h"
#include "kernels/simd.h"

#include <ATen/Dispatch.h>
#include <ATen/Functions.h>
#include <torch/types.h>

namespace sgdph::kernels {
namespace {

const BatchNormKernels& chosen_kernels() {
  return simd() == Simd::Avx2 ? avx2_batch_norm_kernels() : portable_batch_norm_kernels();
}

/// Whether the channels of this tensor lie next to each other.
at::MemoryFormat format_of(const at::Tensor& x) {
  if (x.dim() == 4 || x.dim() == 5) return x.suggest_memory_format();
  return at::MemoryFormat::Contiguous;
}

Layout layout_of(const at::Tensor& x) {
  const auto n = x.size(0);
  const auto channels = x.size(1);
  const auto inner = x.numel() / (n * channels);
  if (format_of(x) != at::MemoryFormat::Contiguous) return {n * inner, channels, 1};
  return {n, channels, inner};
}

/// A per-channel parameter in double, or undefined.
at::Tensor as_double(const at::Tensor& values) {
  return values.defined() ? values.detach().to(at::kDouble).contiguous() : at::Tensor();
}

template <class T>
const T* data(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<T>() : nullptr;
}

template <class T>
T* written(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<T>() : nullptr;
}

at::Tensor channel_values(const at::Tensor& x) {
  return at::empty({x.size(1)}, x.options().dtype(at::kDouble));
}

at::Tensor like(const at::Tensor& x) {
  return at::empty_like(x, x.options(), format_of(x));
}

/// In the layout of x.
at::Tensor laid_out_as(const at::Tensor& tensor, const at::Tensor& x) {
  return tensor.defined() ? tensor.detach().contiguous(format_of(x)) : at::Tensor();
}

Channels channels_of(const Normalisation& normalisation, const at::Tensor& gain, const at::Tensor& shift) {
  return {
      written<double>(normalisation.mean), written<double>(normalisation.invstd), data<double>(gain),
      data<double>(shift)};
}

/// What backward and double backward have in common.
template <template <class> class Pass, class T>
void set_what_came_in(
    Pass<T>& pass, const at::Tensor& x, const at::Tensor& gy, const at::Tensor& gain,
    const Normalisation& normalisation) {
  pass.layout = layout_of(x);
  pass.channels = channels_of(normalisation, gain, {});
  pass.x = data<T>(x);
  pass.gy = data<T>(gy);
  pass.mask = data<uint8_t>(normalisation.mask);
  pass.training = normalisation.training;
}

at::Tensor typed(const at::Tensor& values, const at::Tensor& x) {
  return values.defined() ? values.to(x.scalar_type()) : at::Tensor();
}

void update_running(const at::Tensor& running, const at::Tensor& value, double momentum) {
  if (running.defined()) running.mul_(1 - momentum).add_(value.to(running.scalar_type()), momentum);
}

}  // namespace

bool batch_norm_takes(const at::Tensor& x) {
  return x.defined() && x.device().is_cpu() && x.layout() == at::kStrided && x.dim() >= 2 && x.numel() > 0 &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

at::Tensor batch_norm_forward(
    const at::Tensor& x_, const at::Tensor& residual_, const at::Tensor& gain_, const at::Tensor& shift_,
    const at::Tensor& running_mean, const at::Tensor& running_var, const ForwardOptions& options,
    Normalisation& normalisation) {
  const auto x = laid_out_as(x_, x_);
  const auto residual = laid_out_as(residual_, x);
  const auto gain = as_double(gain_);
  const auto shift = as_double(shift_);
  const auto layout = layout_of(x);
  normalisation.training = options.training;
  at::Tensor variance;
  if (options.training) {
    normalisation.mean = channel_values(x);
    normalisation.invstd = channel_values(x);
    variance = channel_values(x);
  } else {
    // A copy: the statistics may move on before the derivatives.
    normalisation.mean = running_mean.detach().to(at::kDouble, /*non_blocking=*/false, /*copy=*/true).contiguous();
    normalisation.invstd = (as_double(running_var) + options.eps).rsqrt();
  }
  if (options.rectified && options.keep_mask) {
    normalisation.mask = at::empty({layout.mask_bytes()}, x.options().dtype(at::kByte));
  }
  auto y = like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sgdph::batch_norm", [&] {
    ForwardPass<scalar_t> pass;
    pass.layout = layout;
    pass.channels = channels_of(normalisation, gain, shift);
    pass.x = data<scalar_t>(x);
    pass.residual = data<scalar_t>(residual);
    pass.y = written<scalar_t>(y);
    pass.mask = written<uint8_t>(normalisation.mask);
    pass.rectified = options.rectified;
    pass.training = options.training;
    pass.eps = options.eps;
    pass.variance = written<double>(variance);
    chosen_kernels().run(pass);
  });
  if (options.training) {
    const auto count = static_cast<double>(layout.per_channel());
    update_running(running_mean, normalisation.mean, options.momentum);
    update_running(running_var, variance * (count / (count - 1)), options.momentum);
  }
  return y;
}

BatchNormGradients batch_norm_backward(
    at::Tensor gy, const at::Tensor& x_, const at::Tensor& gain_, const Normalisation& normalisation,
    std::array<bool, 4> wanted, bool reuse) {
  const auto x = laid_out_as(x_, x_);
  const auto gain = as_double(gain_);
  const bool alone = reuse && gy.use_count() == 1 && gy.storage().use_count() == 1 && gy.is_contiguous(format_of(x)) &&
                     gy.is_non_overlapping_and_dense();
  BatchNormGradients found;
  // Without a rectifier the residual's gradient is gy: the tensor itself, so that its holders can be counted, or, where
  // it is given a history of its own, an alias.
  if (wanted[3] && !normalisation.mask.defined()) found.residual = reuse ? gy : gy.detach();
  gy = laid_out_as(gy, x);
  // The one that is not read again may take gy's place.
  if (wanted[3] && normalisation.mask.defined()) found.residual = alone ? gy : like(x);
  if (wanted[0]) found.x = alone && !wanted[3] ? gy : like(x);
  if (wanted[1]) found.gain = channel_values(x);
  if (wanted[2]) found.shift = channel_values(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sgdph::batch_norm_backward", [&] {
    BackwardPass<scalar_t> pass;
    set_what_came_in(pass, x, gy, gain, normalisation);
    pass.gx = written<scalar_t>(found.x);
    pass.residual = normalisation.mask.defined() ? written<scalar_t>(found.residual) : nullptr;
    pass.gain = written<double>(found.gain);
    pass.shift = written<double>(found.shift);
    chosen_kernels().run(pass);
  });
  found.gain = typed(found.gain, x);
  found.shift = typed(found.shift, x);
  return found;
}

BatchNormDoubleGradients batch_norm_double_backward(
    const BatchNormGradients& incoming, const at::Tensor& gy_, const at::Tensor& x_, const at::Tensor& gain_,
    const Normalisation& normalisation, std::array<bool, 3> wanted) {
  const auto x = laid_out_as(x_, x_);
  const auto gy = laid_out_as(gy_, x);
  const auto gain = as_double(gain_);
  const auto v = laid_out_as(incoming.x, x);
  const auto r = laid_out_as(incoming.residual, x);
  const auto a = as_double(incoming.gain);
  const auto b = as_double(incoming.shift);
  BatchNormDoubleGradients found;
  if (wanted[0]) found.gy = like(x);
  // These two depend on v and a, and on v, alone.
  if (wanted[1] && (v.defined() || a.defined())) found.x = like(x);
  if (wanted[2] && v.defined()) found.gain = channel_values(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sgdph::batch_norm_double_backward", [&] {
    DoubleBackwardPass<scalar_t> pass;
    set_what_came_in(pass, x, gy, gain, normalisation);
    pass.v = data<scalar_t>(v);
    pass.a = data<double>(a);
    pass.b = data<double>(b);
    pass.r = data<scalar_t>(r);
    pass.ggy = written<scalar_t>(found.gy);
    pass.gx = written<scalar_t>(found.x);
    pass.gain = written<double>(found.gain);
    chosen_kernels().run(pass);
  });
  found.gain = typed(found.gain, x);
  return found;
}

at::Tensor unpacked_mask(const at::Tensor& mask, const at::Tensor& x) {
  const auto layout = layout_of(x);
  const auto run = layout.inner == 1 ? layout.channels : layout.inner;
  const auto bits =
      at::bitwise_and(mask.view({-1, (run + 7) / 8, 1}), at::tensor({1, 2, 4, 8, 16, 32, 64, 128}, mask.options()));
  const auto values = bits.ne(0).reshape({-1, (run + 7) / 8 * 8}).narrow(1, 0, run).to(x.scalar_type());
  // In memory order; the shape follows the layout.
  auto unpacked = like(x.detach());
  unpacked.as_strided({x.numel()}, {1}).copy_(values.reshape({-1}));
  return unpacked;
}

}  // namespace sgdph::kernels
