#pragma once

#include <sgdph/api.h>

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

namespace sgdph {

/// A convolution with weight normalisation (Salimans & Kingma 2016): W_i = gain_i V_i / ||V_i|| for output channel i.
/// `gain` is a 1-D parameter and so a block of SGD-PH. Built from a plain layer it computes the same function.
class SGDPH_API WeightNormConv2dImpl : public torch::nn::Cloneable<WeightNormConv2dImpl> {
 public:
  explicit WeightNormConv2dImpl(const torch::nn::Conv2dOptions& options);
  WeightNormConv2dImpl(int64_t in_channels, int64_t out_channels, torch::ExpandingArray<2> kernel_size)
      : WeightNormConv2dImpl(torch::nn::Conv2dOptions(in_channels, out_channels, kernel_size)) {}
  explicit WeightNormConv2dImpl(const torch::nn::Conv2d& plain);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  at::Tensor forward(const at::Tensor& input);
  /// The normalised weight, gain included.
  at::Tensor weight() const;

  torch::nn::Conv2dOptions options;
  at::Tensor gain;
  at::Tensor direction;
  at::Tensor bias;  ///< undefined without bias

 private:
  void copy_from(const at::Tensor& weight, const at::Tensor& plain_bias);
};
TORCH_MODULE(WeightNormConv2d);

/// A linear layer with weight normalisation, as WeightNormConv2d.
class SGDPH_API WeightNormLinearImpl : public torch::nn::Cloneable<WeightNormLinearImpl> {
 public:
  explicit WeightNormLinearImpl(const torch::nn::LinearOptions& options);
  WeightNormLinearImpl(int64_t in_features, int64_t out_features)
      : WeightNormLinearImpl(torch::nn::LinearOptions(in_features, out_features)) {}
  explicit WeightNormLinearImpl(const torch::nn::Linear& plain);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  at::Tensor forward(const at::Tensor& input);
  at::Tensor weight() const;

  torch::nn::LinearOptions options;
  at::Tensor gain;
  at::Tensor direction;
  at::Tensor bias;

 private:
  void copy_from(const at::Tensor& weight, const at::Tensor& plain_bias);
};
TORCH_MODULE(WeightNormLinear);

}  // namespace sgdph
