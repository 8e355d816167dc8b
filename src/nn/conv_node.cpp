#include "nn/conv_node.h"

#include <sgdph/nn/functional.h>

#include "detail/compat.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/types.h>

#include <mutex>
#include <utility>

namespace sgdph::nn {
namespace {

using torch::autograd::collect_next_edges;
using torch::autograd::variable_list;

std::tuple<at::Tensor, at::Tensor, at::Tensor> conv_backward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight, at::OptionalIntArrayRef bias_sizes,
    const ConvParameters& p, bool transposed, at::IntArrayRef output_padding, std::array<bool, 3> wanted) {
  return at::convolution_backward(
      gradient, input, weight, bias_sizes, p.stride, p.padding, p.dilation, transposed, output_padding, p.groups,
      wanted);
}

at::Tensor sum_of(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

}  // namespace

ConvBackward::ConvBackward(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, ConvParameters parameters)
    : input_(input, false),
      weight_(weight, false),
      parameters_(std::move(parameters)),
      input_sizes_(input.sizes().vec()),
      bias_sizes_(bias.defined() ? bias.sizes().vec() : std::vector<int64_t>()),
      input_options_(input.options().requires_grad(false)),
      input_format_(input.suggest_memory_format()) {
  set_next_edges(collect_next_edges(input, weight, bias));
}

/// Where the input was dropped, its shape is all that is read.
at::Tensor ConvBackward::input_or_stand_in() const {
  if (!input_dropped_) return input_.unpack();
  return at::empty(input_sizes_, input_options_, input_format_);
}

variable_list ConvBackward::apply(variable_list&& grads) {
  const std::lock_guard lock(mutex_);
  const auto& gradient = grads[0];
  if (!gradient.defined()) return variable_list(3);
  const auto weight = weight_.unpack();
  const std::array<bool, 3> wanted{
      task_should_compute_output(0), task_should_compute_output(1), task_should_compute_output(2)};
  TORCH_CHECK(
      !(input_dropped_ && wanted[1]),
      "Trying to backward through the graph a second time: the optimizer's backward() has freed what a convolution "
      "kept. Hand it retain_graph = true if the loss is needed again.");
  const auto input = input_or_stand_in();
  variable_list found(3);
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    std::tie(found[0], found[1], found[2]) = conv_backward(
        gradient, input, weight, wanted[2] ? at::OptionalIntArrayRef(bias_sizes_) : c10::nullopt, parameters_, false,
        {0, 0}, wanted);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!wanted[i]) found[i].reset();
  }
  if (torch::autograd::compute_requires_grad(gradient, input, weight)) {
    // With a constant weight its gradient has no history of interest.
    const auto node = sgdph::detail::own_node(
        new ConvBackwardBackward(gradient, weight_constant_ ? at::Tensor() : input, weight, parameters_));
    for (size_t i = 0; i < found.size(); ++i) {
      if (i == 1 && weight_constant_) {
        node->add_input_metadata(torch::autograd::Node::undefined_input());
      } else {
        torch::autograd::set_history(found[i], node);
      }
    }
  }
  if (drop_input_) {
    input_.reset_data();
    input_dropped_ = true;
  }
  return found;
}

void ConvBackward::release_variables() {
  const std::lock_guard lock(mutex_);
  input_.reset_data();
  weight_.reset_data();
}

void ConvBackward::plan(const std::vector<bool>& leads_to_block, bool graph_is_ours) {
  weight_constant_ = !leads_to_block[1];
  drop_input_ = weight_constant_ && graph_is_ours;
}

void ConvBackward::forget_plan() {
  weight_constant_ = false;
  drop_input_ = false;
}

ConvBackwardBackward::ConvBackwardBackward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight, ConvParameters parameters)
    : weight_(weight, false),
      parameters_(std::move(parameters)),
      weight_constant_(!input.defined()),
      gradient_sizes_(gradient.sizes().vec()) {
  if (weight_constant_) {
    set_next_edges(collect_next_edges(gradient, at::Tensor(), at::Tensor()));
  } else {
    gradient_ = torch::autograd::SavedVariable(gradient, false);
    input_ = torch::autograd::SavedVariable(input, false);
    set_next_edges(collect_next_edges(gradient, input, weight));
  }
}

variable_list ConvBackwardBackward::apply(variable_list&& grads) {
  const std::lock_guard lock(mutex_);
  if (!grads[0].defined() && !grads[1].defined() && !grads[2].defined()) return variable_list(3);
  const auto weight = weight_.unpack();
  const auto gradient = weight_constant_ ? at::Tensor() : gradient_.unpack();
  const auto input = weight_constant_ ? at::Tensor() : input_.unpack();
  return conv_double_backward(
      grads[0], grads[1], grads[2], gradient, gradient_sizes_, input, weight, parameters_, false, {0, 0},
      {task_should_compute_output(0), task_should_compute_output(1), task_should_compute_output(2)});
}

void ConvBackwardBackward::release_variables() {
  const std::lock_guard lock(mutex_);
  gradient_.reset_data();
  input_.reset_data();
  weight_.reset_data();
}

variable_list conv_double_backward(
    const at::Tensor& for_input_, const at::Tensor& for_weight_, const at::Tensor& for_bias,
    const at::Tensor& gradient_, at::IntArrayRef gradient_sizes, const at::Tensor& input_, const at::Tensor& weight_,
    const ConvParameters& p, bool transposed, at::IntArrayRef output_padding, std::array<bool, 3> wanted) {
  // Neighbouring layers may hand over channels last what this convolution must not have so.
  const bool keep = transposed || weight_.dim() != 4 || functional::safe_with_channels_last(weight_, p.groups);
  const auto ordered = [&](const at::Tensor& tensor) {
    return keep || !tensor.defined() ? tensor : tensor.contiguous();
  };
  const auto for_input = ordered(for_input_);
  const auto for_weight = ordered(for_weight_);
  const auto gradient = ordered(gradient_);
  const auto input = ordered(input_);
  const auto weight = ordered(weight_);
  const auto conv = [&](const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    return at::convolution(x, w, b, p.stride, p.padding, p.dilation, transposed, output_padding, p.groups);
  };
  variable_list found(3);
  if (wanted[0]) {
    // The bias goes with the first convolution there is.
    if (for_input.defined()) found[0] = conv(for_input, weight, for_bias);
    if (for_weight.defined()) {
      found[0] = sum_of(found[0], conv(input, for_weight, for_input.defined() ? at::Tensor() : for_bias));
    }
    if (!found[0].defined() && for_bias.defined()) {
      std::vector<int64_t> channel_shape(gradient_sizes.size(), 1);
      channel_shape[1] = for_bias.numel();
      found[0] = for_bias.view(channel_shape).expand(gradient_sizes);
    }
  }
  if (wanted[1] && for_weight.defined()) {
    found[1] = std::get<0>(
        conv_backward(gradient, input, for_weight, c10::nullopt, p, transposed, output_padding, {true, false, false}));
  }
  if (wanted[2] && for_input.defined()) {
    found[2] = std::get<1>(
        conv_backward(gradient, for_input, weight, c10::nullopt, p, transposed, output_padding, {false, true, false}));
  }
  return found;
}

}  // namespace sgdph::nn
