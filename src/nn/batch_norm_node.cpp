#include "nn/batch_norm_node.h"

#include "detail/compat.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/utils.h>

#include <mutex>
#include <utility>

namespace sgdph::nn {
namespace {

using kernels::BatchNormDoubleGradients;
using kernels::BatchNormGradients;
using kernels::Normalisation;
using torch::autograd::collect_next_edges;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

bool kernels_take(const at::Tensor& x, const at::Tensor& other) {
  return kernels::batch_norm_takes(x) && (!other.defined() || other.scalar_type() == x.scalar_type());
}

/// The first derivative in LibTorch's own operators, which autograd can follow to any order.
BatchNormGradients composite_backward(
    const at::Tensor& gy, const at::Tensor& x, const at::Tensor& gain, const Normalisation& normalisation, double eps) {
  std::vector<int64_t> others{0};
  for (int64_t d = 2; d < x.dim(); ++d) others.push_back(d);
  std::vector<int64_t> channel_shape(x.dim(), 1);
  channel_shape[1] = x.size(1);
  at::Tensor mean, invstd;
  if (normalisation.training) {
    mean = x.mean(others, /*keepdim=*/true);
    invstd = ((x - mean).square().mean(others, /*keepdim=*/true) + eps).rsqrt();
  } else {
    mean = normalisation.mean.to(x.scalar_type()).view(channel_shape);
    invstd = normalisation.invstd.to(x.scalar_type()).view(channel_shape);
  }
  const auto xh = (x - mean) * invstd;
  BatchNormGradients found;
  found.residual = normalisation.mask.defined() ? gy * kernels::unpacked_mask(normalisation.mask, x) : gy;
  found.shift = found.residual.sum(others);
  found.gain = (found.residual * xh).sum(others);
  const auto scale = gain.defined() ? invstd * gain.view(channel_shape) : invstd;
  found.x = scale * found.residual;
  if (normalisation.training) {
    const auto share = static_cast<double>(x.size(1)) / static_cast<double>(x.numel());
    found.x =
        scale * (found.residual - share * (found.shift.view(channel_shape) + xh * found.gain.view(channel_shape)));
  }
  return found;
}

/// The second derivative through autograd: for what the kernels do not take, and for third derivatives.
variable_list composite_double_backward(
    const BatchNormGradients& incoming, const at::Tensor& gy, const at::Tensor& x, const at::Tensor& gain,
    const Normalisation& normalisation, double eps, std::array<bool, 3> wanted) {
  const bool create_graph = at::GradMode::is_enabled();
  const torch::AutoGradMode grad_mode(true);
  const std::array<at::Tensor, 3> given{gy, x, gain};
  std::array<at::Tensor, 3> inputs;
  variable_list asked;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].defined()) continue;
    // Aliases, because gy may itself depend on x and on the gain; leaves where nothing outside is to be reached.
    inputs[i] =
        create_graph && given[i].requires_grad() ? at::alias(given[i]) : given[i].detach().requires_grad_(wanted[i]);
    if (wanted[i] && inputs[i].defined()) asked.push_back(inputs[i]);
  }
  const auto first = composite_backward(inputs[0], inputs[1], inputs[2], normalisation, eps);
  variable_list outputs, weights;
  const auto use = [&](const at::Tensor& output, const at::Tensor& weight) {
    if (!weight.defined() || !output.requires_grad()) return;
    outputs.push_back(output);
    weights.push_back(weight.to(output.scalar_type()));
  };
  use(first.x, incoming.x);
  use(first.gain, incoming.gain);
  use(first.shift, incoming.shift);
  use(first.residual, incoming.residual);
  variable_list found(3);
  if (outputs.empty() || asked.empty()) return found;
  const auto gradients = torch::autograd::grad(
      outputs, asked, weights, /*retain_graph=*/create_graph, create_graph, /*allow_unused=*/true);
  for (size_t i = 0, next = 0; i < found.size(); ++i) {
    if (wanted[i] && inputs[i].defined()) found[i] = gradients[next++];
  }
  return found;
}

}  // namespace

BatchNormBackward::BatchNormBackward(
    const at::Tensor& x, const at::Tensor& gain, const at::Tensor& shift, const at::Tensor& residual,
    Normalisation normalisation, double eps)
    : x_(x, false), gain_(gain, false), normalisation_(std::move(normalisation)), eps_(eps), has_gain_(gain.defined()) {
  set_next_edges(collect_next_edges(x, gain, shift, residual));
}

variable_list BatchNormBackward::apply(variable_list&& grads) {
  const std::lock_guard lock(mutex_);
  auto gy = std::move(grads[0]);
  if (!gy.defined()) return variable_list(4);
  const auto x = x_.unpack();
  const auto gain = has_gain_ ? gain_.unpack() : at::Tensor();
  const std::array<bool, 4> wanted{
      task_should_compute_output(0), task_should_compute_output(1), task_should_compute_output(2),
      task_should_compute_output(3)};
  const bool record = torch::autograd::compute_requires_grad(gy, x, gain);
  // Held, it is not written over.
  const auto kept = record ? gy : at::Tensor();
  BatchNormGradients found;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    found = batch_norm_backward(std::move(gy), x, gain, normalisation_, wanted, /*reuse=*/!record);
  }
  if (record) record_batch_norm_backward(found, kept, x, gain, normalisation_, eps_);
  return {found.x, found.gain, found.shift, found.residual};
}

void BatchNormBackward::release_variables() {
  const std::lock_guard lock(mutex_);
  x_.reset_data();
  gain_.reset_data();
  normalisation_.mask.reset();
}

BatchNormBackwardBackward::BatchNormBackwardBackward(
    const at::Tensor& gy, const at::Tensor& x, const at::Tensor& gain, Normalisation normalisation, double eps)
    : gy_(gy, false),
      x_(x, false),
      gain_(gain, false),
      normalisation_(std::move(normalisation)),
      eps_(eps),
      has_gain_(gain.defined()) {
  set_next_edges(collect_next_edges(gy, x, gain));
}

variable_list BatchNormBackwardBackward::apply(variable_list&& grads) {
  const std::lock_guard lock(mutex_);
  const BatchNormGradients incoming{grads[0], grads[1], grads[2], grads[3]};
  if (!incoming.x.defined() && !incoming.gain.defined() && !incoming.shift.defined() && !incoming.residual.defined()) {
    return variable_list(3);
  }
  const auto gy = gy_.unpack();
  const auto x = x_.unpack();
  const auto gain = has_gain_ ? gain_.unpack() : at::Tensor();
  const std::array<bool, 3> wanted{
      task_should_compute_output(0), task_should_compute_output(1), task_should_compute_output(2)};
  if (at::GradMode::is_enabled() || !kernels_take(x, gy) || !kernels_take(x, incoming.x) ||
      !kernels_take(x, incoming.residual)) {
    return composite_double_backward(incoming, gy, x, gain, normalisation_, eps_, wanted);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  auto found = batch_norm_double_backward(incoming, gy, x, gain, normalisation_, wanted);
  return {found.gy, found.x, found.gain};
}

void BatchNormBackwardBackward::release_variables() {
  const std::lock_guard lock(mutex_);
  gy_.reset_data();
  x_.reset_data();
  gain_.reset_data();
  normalisation_.mask.reset();
}

void record_batch_norm_backward(
    BatchNormGradients& gradients, const at::Tensor& gy, const at::Tensor& x, const at::Tensor& gain,
    const Normalisation& normalisation, double eps) {
  if (!torch::autograd::compute_requires_grad(gy, x, gain)) return;
  const auto node = sgdph::detail::own_node(new BatchNormBackwardBackward(gy, x, gain, normalisation, eps));
  for (auto* gradient : {&gradients.x, &gradients.gain, &gradients.shift, &gradients.residual}) {
    torch::autograd::set_history(*gradient, node);
  }
}

}  // namespace sgdph::nn
