#pragma once

#include "product_plan.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <vector>

namespace sgdph::nn {

struct ConvParameters {
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups = 1;
};

/// The first derivative of a convolution in autograd's graph. Edges: input, weight, bias.
class ConvBackward : public torch::autograd::Node, public Plannable {
 public:
  ConvBackward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, ConvParameters parameters);

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override;
  void release_variables() override;
  std::string name() const override { return "sgdph::ConvBackward"; }
  /// If the blocks of a product do not lie behind the weight, the double backward needs the weight alone, and the
  /// input is of no use once the weight's gradient is there.
  void plan(const std::vector<bool>& leads_to_block, bool graph_is_ours) override;
  void forget_plan() override;

 private:
  at::Tensor input_or_stand_in() const;

  torch::autograd::SavedVariable input_, weight_;
  ConvParameters parameters_;
  std::vector<int64_t> input_sizes_, bias_sizes_;
  at::TensorOptions input_options_;
  at::MemoryFormat input_format_;
  bool weight_constant_ = false;
  bool drop_input_ = false;
  bool input_dropped_ = false;
};

/// The second derivative: from what comes in for the gradients of input, weight and bias, exactly what is asked for.
/// Edges: gradient of the output, input, weight.
class ConvBackwardBackward : public torch::autograd::Node {
 public:
  /// `input` may be undefined if the weight is a constant: then there is no edge to it nor to the weight.
  ConvBackwardBackward(
      const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight, ConvParameters parameters);

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override;
  void release_variables() override;
  std::string name() const override { return "sgdph::ConvBackwardBackward"; }

 private:
  torch::autograd::SavedVariable gradient_, input_, weight_;
  ConvParameters parameters_;
  bool weight_constant_;
  std::vector<int64_t> gradient_sizes_;
};

/// `_convolution_double_backward` of LibTorch, computing what `wanted` (output gradient, input, weight) asks for and
/// no more. In LibTorch's differentiable operators, so that there is a third derivative. `gradient` and `input` may be
/// undefined where no term needs them; `gradient_sizes` is the former's shape.
torch::autograd::variable_list conv_double_backward(
    const at::Tensor& for_input, const at::Tensor& for_weight, const at::Tensor& for_bias, const at::Tensor& gradient,
    at::IntArrayRef gradient_sizes, const at::Tensor& input, const at::Tensor& weight, const ConvParameters& parameters,
    bool transposed, at::IntArrayRef output_padding, std::array<bool, 3> wanted);

}  // namespace sgdph::nn
