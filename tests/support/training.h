#pragma once

#include <sgdph/sgdph.h>

#include "detail/compat.h"

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sgdph::test {

using Parameters = std::vector<at::Tensor>;
using Groups = std::vector<torch::optim::OptimizerParamGroup>;

/// The names of the catalogue's optimizers that are ours, not LibTorch's.
std::vector<std::string> our_optimizers();

/// A parameter's state; fails if there is none.
template <class State>
State& state_of(torch::optim::Optimizer& optimizer, const at::Tensor& parameter) {
  auto& map = optimizer.state();
  return static_cast<State&>(*map.at(detail::state_key(map, parameter)));
}

/// Backward through the optimizer if it measures curvature, else through the loss.
void run_backward(torch::optim::Optimizer& optimizer, const at::Tensor& loss);

/// One step: clear, loss, backward, step. Returns the loss.
double train_step(torch::optim::Optimizer& optimizer, const std::function<at::Tensor()>& loss);

/// The message of the c10::Error that `action` throws, without the backtrace; empty if it does not throw.
std::string error_of(const std::function<void()>& action);

/// A parameter with this value, in float64.
at::Tensor leaf(const std::vector<double>& values);

/// Makes a group with options of its own.
template <class Options>
torch::optim::OptimizerParamGroup group(Parameters parameters, const Options& options) {
  return torch::optim::OptimizerParamGroup(std::move(parameters), std::make_unique<Options>(options));
}

}  // namespace sgdph::test

/// The action throws a c10::Error whose message holds every one of these texts.
#define EXPECT_ERROR(action, ...)                                                     \
  do {                                                                                \
    const auto message = ::sgdph::test::error_of([&] { static_cast<void>(action); }); \
    EXPECT_FALSE(message.empty()) << "no error from " #action;                        \
    for (const auto& text : std::vector<std::string>{__VA_ARGS__}) {                  \
      EXPECT_NE(message.find(text), std::string::npos) << message;                    \
    }                                                                                 \
  } while (false)
