#include <sgdph/weight_norm.h>

#include <sgdph/nn/functional.h>

#include "detail/compat.h"

#include <torch/nn/functional/conv.h>
#include <torch/nn/functional/padding.h>
#include <torch/nn/init.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

namespace sgdph {
namespace {

/// Norm of each output channel's weights.
at::Tensor channel_norm(const at::Tensor& weight) {
  return weight.flatten(1).norm(2, 1);
}

/// gain_i V_i / ||V_i||.
at::Tensor normalised(const at::Tensor& gain, const at::Tensor& direction) {
  std::vector<int64_t> per_channel(direction.dim(), 1);
  per_channel[0] = -1;
  return direction * (gain / channel_norm(direction)).view(per_channel);
}

/// Sets gain and direction so that the normalised weight equals `weight`. A channel of zeros gets gain 0 and an
/// arbitrary direction, since zero has none.
void decompose(const at::Tensor& weight, at::Tensor& gain, at::Tensor& direction) {
  torch::NoGradGuard no_grad;
  const auto norm = channel_norm(weight);
  gain.copy_(norm);
  direction.copy_(weight);
  const auto zero = norm.eq(0);
  if (zero.any().item<bool>()) direction.index_put_({zero}, 1.0);
}

/// LibTorch's initial weight and bias of linear and convolution layers.
void reset_plain(at::Tensor& weight, at::Tensor& bias) {
  torch::nn::init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const int64_t fan_in = weight.numel() / weight.size(0);
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  torch::nn::init::uniform_(bias, -bound, bound);
}

}  // namespace

WeightNormConv2dImpl::WeightNormConv2dImpl(const torch::nn::Conv2dOptions& options_) : options(options_) {
  reset();
}

WeightNormConv2dImpl::WeightNormConv2dImpl(const torch::nn::Conv2d& plain)
    : options(torch::nn::Conv2dOptions(
                  plain->options.in_channels(), plain->options.out_channels(), plain->options.kernel_size())
                  .stride(plain->options.stride())
                  .padding(plain->options.padding())
                  .dilation(plain->options.dilation())
                  .groups(plain->options.groups())
                  .bias(plain->options.bias())
                  .padding_mode(plain->options.padding_mode())) {
  reset();
  copy_from(plain->weight, plain->bias);
}

void WeightNormConv2dImpl::copy_from(const at::Tensor& weight, const at::Tensor& plain_bias) {
  to(weight.device(), weight.scalar_type());
  decompose(weight, gain, direction);
  torch::NoGradGuard no_grad;
  if (bias.defined()) bias.copy_(plain_bias);
}

void WeightNormConv2dImpl::reset() {
  TORCH_CHECK(
      options.in_channels() > 0 && options.out_channels() > 0 && options.groups() > 0 &&
          options.in_channels() % options.groups() == 0 && options.out_channels() % options.groups() == 0,
      "WeightNormConv2d: in_channels ", options.in_channels(), " and out_channels ", options.out_channels(),
      " must be positive multiples of groups ", options.groups());
  const auto& kernel = *options.kernel_size();
  gain = register_parameter("gain", at::empty({options.out_channels()}));
  direction = register_parameter(
      "direction", at::empty({options.out_channels(), options.in_channels() / options.groups(), kernel[0], kernel[1]}));
  bias =
      register_parameter("bias", options.bias() ? at::empty({options.out_channels()}) : at::Tensor(), options.bias());
  reset_parameters();
}

void WeightNormConv2dImpl::reset_parameters() {
  auto weight = at::empty_like(direction);
  reset_plain(weight, bias);
  decompose(weight, gain, direction);
}

at::Tensor WeightNormConv2dImpl::weight() const {
  return normalised(gain, direction);
}

at::Tensor WeightNormConv2dImpl::forward(const at::Tensor& input) {
  namespace F = torch::nn::functional;
  auto convolution =
      F::Conv2dFuncOptions().bias(bias).stride(options.stride()).dilation(options.dilation()).groups(options.groups());
  if (detail::get_if<torch::enumtype::kZeros>(&options.padding_mode())) {
    const auto* padding = detail::get_if<torch::ExpandingArray<2>>(&options.padding());
    if (padding != nullptr && input.dim() == 4) {
      return sgdph::nn::functional::conv2d(
          input, weight(), bias, {*options.stride(), **padding, *options.dilation(), options.groups()});
    }
    return F::conv2d(input, weight(), convolution.padding(options.padding()));
  }
  // Pad by hand, last dimension first; "same" pads kernel - 1 times the dilation in all, the odd one at the end.
  // (LibTorch 1.13's own layer swaps height and width there, which shows when the kernel is not square.)
  std::vector<int64_t> amounts;
  for (const auto axis : {1, 0}) {
    int64_t before = 0;
    int64_t after = 0;
    if (const auto* sizes = detail::get_if<torch::ExpandingArray<2>>(&options.padding())) {
      before = after = (**sizes)[axis];
    } else if (detail::get_if<torch::enumtype::kSame>(&options.padding())) {
      const auto total = (*options.dilation())[axis] * ((*options.kernel_size())[axis] - 1);
      before = total / 2;
      after = total - before;
    }
    amounts.push_back(before);
    amounts.push_back(after);
  }
  F::PadFuncOptions pad(amounts);
  if (detail::get_if<torch::enumtype::kReflect>(&options.padding_mode())) {
    pad.mode(torch::kReflect);
  } else if (detail::get_if<torch::enumtype::kReplicate>(&options.padding_mode())) {
    pad.mode(torch::kReplicate);
  } else {
    pad.mode(torch::kCircular);
  }
  return F::conv2d(F::pad(input, pad), weight(), convolution);
}

void WeightNormConv2dImpl::pretty_print(std::ostream& stream) const {
  stream << "sgdph::WeightNormConv2d(" << options.in_channels() << ", " << options.out_channels()
         << ", kernel_size=" << options.kernel_size() << ", stride=" << options.stride() << ")";
}

WeightNormLinearImpl::WeightNormLinearImpl(const torch::nn::LinearOptions& options_) : options(options_) {
  reset();
}

WeightNormLinearImpl::WeightNormLinearImpl(const torch::nn::Linear& plain) : options(plain->options) {
  reset();
  copy_from(plain->weight, plain->bias);
}

void WeightNormLinearImpl::copy_from(const at::Tensor& weight, const at::Tensor& plain_bias) {
  to(weight.device(), weight.scalar_type());
  decompose(weight, gain, direction);
  torch::NoGradGuard no_grad;
  if (bias.defined()) bias.copy_(plain_bias);
}

void WeightNormLinearImpl::reset() {
  gain = register_parameter("gain", at::empty({options.out_features()}));
  direction = register_parameter("direction", at::empty({options.out_features(), options.in_features()}));
  bias =
      register_parameter("bias", options.bias() ? at::empty({options.out_features()}) : at::Tensor(), options.bias());
  reset_parameters();
}

void WeightNormLinearImpl::reset_parameters() {
  auto weight = at::empty_like(direction);
  reset_plain(weight, bias);
  decompose(weight, gain, direction);
}

at::Tensor WeightNormLinearImpl::weight() const {
  return normalised(gain, direction);
}

at::Tensor WeightNormLinearImpl::forward(const at::Tensor& input) {
  return at::linear(input, weight(), bias);
}

void WeightNormLinearImpl::pretty_print(std::ostream& stream) const {
  stream << "sgdph::WeightNormLinear(in_features=" << options.in_features()
         << ", out_features=" << options.out_features() << ", bias=" << std::boolalpha << options.bias() << ")";
}

}  // namespace sgdph
