#pragma once

#include <torch/torch.h>

#include <functional>

namespace sgdph::test {

/// tanh, whose backward pass records nothing, as that of a fused kernel.
struct FusedTanh : torch::autograd::Function<FusedTanh> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x.tanh();
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    const torch::NoGradGuard no_grad;
    return {gradients[0] * (1 - context->get_saved_variables()[0].tanh().square())};
  }
};

/// A part of a network.
using Part = std::function<at::Tensor(const at::Tensor&)>;

/// The forward pass without a graph, done again for the backward pass, which runs one of its own, as checkpoints do to
/// save memory. The part has to outlive the graph.
struct Checkpoint : torch::autograd::Function<Checkpoint> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, int64_t part) {
    context->save_for_backward({x});
    context->saved_data["part"] = part;
    const torch::NoGradGuard no_grad;
    return (*reinterpret_cast<const Part*>(part))(x);
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    auto x = context->get_saved_variables()[0].detach().requires_grad_(true);
    const torch::AutoGradMode enable(true);
    const auto y = (*reinterpret_cast<const Part*>(context->saved_data["part"].toInt()))(x);
    torch::autograd::backward({y}, {gradients[0]});
    return {x.grad(), at::Tensor()};
  }
};

inline at::Tensor checkpointed(const Part& part, const at::Tensor& x) {
  return Checkpoint::apply(x, reinterpret_cast<int64_t>(&part));
}

}  // namespace sgdph::test
