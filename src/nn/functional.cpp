#include <sgdph/nn/functional.h>

#include "detail/compat.h"
#include "nn/batch_norm_node.h"
#include "nn/conv_node.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/types.h>

namespace sgdph::nn::functional {
namespace {

bool is_plain(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.layout() == at::kStrided && !tensor.is_quantized() &&
         (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble);
}

/// The types of our convolution. It is there for bfloat16 also because the double backward of LibTorch 1.13's, on
/// processors with AVX-512, runs the transposed convolutions in it as plain ones: wrong values, or an error.
bool is_convolved(const at::Tensor& tensor) {
  return is_plain(tensor) ||
         (tensor.device().is_cpu() && tensor.layout() == at::kStrided && tensor.scalar_type() == at::kBFloat16);
}

/// Undefined, or of the type and on the device of `x`.
bool goes_with(const at::Tensor& tensor, const at::Tensor& x) {
  return !tensor.defined() || (is_plain(tensor) && tensor.scalar_type() == x.scalar_type());
}

/// Forward derivatives are LibTorch's business.
bool has_tangent(const at::Tensor& tensor) {
  return tensor.defined() && tensor._fw_grad(/*level=*/0).defined();
}

/// Whether autocast is on for the tensor's device.
bool is_autocast(const at::Tensor& tensor) {
  return !((tensor.key_set() & c10::autocast_dispatch_keyset) - c10::impl::tls_local_dispatch_key_set().excluded_)
              .empty();
}

/// Fewer digits than the parameters that go with it, as under autocast.
bool is_coarser(const at::Tensor& input, const at::Tensor& gain, const at::Tensor& running_mean) {
  const auto type = input.scalar_type();
  const auto& values = gain.defined() ? gain : running_mean;
  return (type == at::kBFloat16 || type == at::kHalf) && (!values.defined() || values.scalar_type() == at::kFloat);
}

at::Tensor stock_batch_norm(
    const at::Tensor& input, const at::Tensor& residual, const at::Tensor& gain, const at::Tensor& shift,
    const at::Tensor& running_mean, const at::Tensor& running_var, const BatchNormOptions& options) {
  auto y = at::batch_norm(
      input, gain, shift, running_mean, running_var, options.training, options.momentum, options.eps,
      at::globalContext().userEnabledCuDNN());
  if (residual.defined()) y = y + residual;
  return options.relu ? y.relu() : y;
}

void check_values_per_channel(const at::Tensor& input) {
  // As LibTorch's batch norm says it.
  TORCH_CHECK(
      input.numel() != input.size(1), "Expected more than 1 value per channel when training, got input size ",
      input.sizes());
}

void check_channels(const at::Tensor& values, const char* what, const at::Tensor& input) {
  TORCH_CHECK(
      !values.defined() || (values.dim() == 1 && values.numel() == input.size(1)),
      "sgdph::nn::functional::batch_norm: ", what, " must have one value for each of ", input.size(1),
      " channels, got shape ", values.sizes());
}

}  // namespace

bool safe_with_channels_last(const at::Tensor& weight, int64_t groups) {
  constexpr int64_t kFull = 16;
  constexpr int64_t kImageChannels = 4;
  const auto out = weight.size(0);
  const auto in = weight.size(1);
  return groups == 1 && out % kFull == 0 && (in % kFull == 0 || in <= kImageChannels);
}

at::Tensor conv2d(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, const Conv2dOptions& options) {
  if (input.device().is_cpu() && is_autocast(input)) {
    // As LibTorch's own policy for convolutions.
    const auto type = at::autocast::get_lower_precision_fp_from_device_type(at::kCPU);
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const auto cast = [&](const at::Tensor& tensor) { return at::autocast::cached_cast(type, tensor, at::kCPU); };
    return conv2d(cast(input), cast(weight), cast(bias), options);
  }
  const auto goes_along = [&](const at::Tensor& tensor) {
    return !tensor.defined() || (is_convolved(tensor) && tensor.scalar_type() == input.scalar_type());
  };
  if (!is_convolved(input) || input.dim() != 4 || input.numel() == 0 || weight.dim() != 4 || !goes_along(weight) ||
      !goes_along(bias) || is_autocast(input) || has_tangent(input) || has_tangent(weight) || has_tangent(bias)) {
    return at::conv2d(input, weight, bias, options.stride, options.padding, options.dilation, options.groups);
  }
  const auto last = at::MemoryFormat::ChannelsLast;
  if (!safe_with_channels_last(weight, options.groups) &&
      (input.suggest_memory_format() == last || weight.suggest_memory_format() == last) &&
      !(input.is_contiguous() && weight.is_contiguous())) {
    return conv2d(input.contiguous(), weight.contiguous(), bias, options);
  }
  at::Tensor output;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    output = at::convolution(
        input, weight, bias, options.stride, options.padding, options.dilation, /*transposed=*/false,
        /*output_padding=*/{0, 0}, options.groups);
  }
  if (torch::autograd::compute_requires_grad(input, weight, bias)) {
    const auto vector = [](const std::array<int64_t, 2>& pair) { return std::vector<int64_t>{pair[0], pair[1]}; };
    const auto node = sgdph::detail::own_node(new ConvBackward(
        input, weight, bias,
        {vector(options.stride), vector(options.padding), vector(options.dilation), options.groups}));
    torch::autograd::set_history(output, node);
  }
  return output;
}

at::Tensor batch_norm(
    const at::Tensor& input, const at::Tensor& residual, const at::Tensor& gain, const at::Tensor& shift,
    const at::Tensor& running_mean, const at::Tensor& running_var, const BatchNormOptions& options) {
  if (options.training && input.dim() >= 2) check_values_per_channel(input);
  if (input.device().is_cpu() && is_coarser(input, gain, running_mean)) {
    const auto wide = residual.defined() ? residual.to(at::kFloat) : residual;
    return batch_norm(input.to(at::kFloat), wide, gain, shift, running_mean, running_var, options)
        .to(input.scalar_type());
  }
  const bool taken = kernels::batch_norm_takes(input) && is_plain(input) && goes_with(residual, input) &&
                     goes_with(gain, input) && goes_with(shift, input) && goes_with(running_mean, input) &&
                     goes_with(running_var, input) && !has_tangent(input) && !has_tangent(residual) &&
                     !has_tangent(gain) && !has_tangent(shift) &&
                     (!residual.defined() || residual.sizes() == input.sizes());
  if (!taken) return stock_batch_norm(input, residual, gain, shift, running_mean, running_var, options);
  check_channels(gain, "the gain", input);
  check_channels(shift, "the shift", input);
  check_channels(running_mean, "the running mean", input);
  check_channels(running_var, "the running variance", input);
  TORCH_CHECK(
      options.training || (running_mean.defined() && running_var.defined()),
      "sgdph::nn::functional::batch_norm: evaluation needs running mean and variance");

  const bool record = torch::autograd::compute_requires_grad(input, residual, gain, shift);
  kernels::ForwardOptions how{options.training, options.momentum, options.eps, options.relu, /*keep_mask=*/record};
  kernels::Normalisation normalisation;
  at::Tensor output;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    output = kernels::batch_norm_forward(input, residual, gain, shift, running_mean, running_var, how, normalisation);
  }
  if (record) {
    const auto node = sgdph::detail::own_node(
        new BatchNormBackward(input, gain, shift, residual, std::move(normalisation), options.eps));
    torch::autograd::set_history(output, node);
  }
  return output;
}

}  // namespace sgdph::nn::functional
