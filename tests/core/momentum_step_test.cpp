// The fused step is its formula, for whatever layout it takes.

#include "kernels/momentum_step.h"
#include "support/derivatives.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <gtest/gtest.h>

namespace sgdph::test::momentum_step_test {
namespace {

using kernels::momentum_step;
using kernels::momentum_step_takes;
using kernels::MomentumStep;

constexpr MomentumStep kStep{0.9, 0.1, 5e-4, 0.999, 0.05};

struct Case {
  explicit Case(
      at::IntArrayRef sizes, at::ScalarType dtype = torch::kFloat64,
      at::MemoryFormat format = at::MemoryFormat::Contiguous) {
    torch::manual_seed(7);
    for (auto* tensor : {&parameter, &gradient, &momentum}) *tensor = torch::randn(sizes, dtype).contiguous(format);
  }
  at::Tensor parameter, gradient, momentum;
};

TEST(MomentumStep, IsItsFormulaInEveryLayoutItTakes) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      Case c({5, 7, 3, 3}, dtype, format);
      const auto momentum = kStep.keep * c.momentum + kStep.take * c.gradient + kStep.decay * c.parameter;
      const auto parameter = kStep.shrink * c.parameter - kStep.rate * momentum;
      ASSERT_TRUE(momentum_step_takes(c.parameter, c.gradient, c.momentum));
      momentum_step(c.parameter, c.gradient, c.momentum, kStep);
      const auto tolerance = dtype == torch::kFloat64 ? 1e-15 : 1e-6;
      EXPECT_LE(relative_difference(c.momentum, momentum), tolerance);
      EXPECT_LE(relative_difference(c.parameter, parameter), tolerance);
    }
  }
}

TEST(MomentumStep, LeavesOtherLayoutsAndTypesToOthers) {
  const Case plain({4, 6, 3, 3});
  const Case last({4, 6, 3, 3}, torch::kFloat64, at::MemoryFormat::ChannelsLast);
  EXPECT_FALSE(momentum_step_takes(plain.parameter, last.gradient, plain.momentum));
  EXPECT_FALSE(momentum_step_takes(plain.parameter, plain.gradient, last.momentum));
  const Case small({4, 6, 3, 3}, torch::kFloat32);
  EXPECT_FALSE(momentum_step_takes(plain.parameter, small.gradient, plain.momentum));
  const Case half({4, 1}, torch::kBFloat16);
  EXPECT_FALSE(momentum_step_takes(half.parameter, half.gradient, half.momentum));
  const auto every_second = torch::zeros({8}).slice(0, 0, 8, 2);
  EXPECT_FALSE(momentum_step_takes(every_second, every_second, every_second));
}

TEST(MomentumStep, HasTheSameBitsForAnyNumberOfThreads) {
  const auto threads = at::get_num_threads();
  std::vector<at::Tensor> found;
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    Case c({200003, 1}, torch::kFloat32);
    momentum_step(c.parameter, c.gradient, c.momentum, kStep);
    found.push_back(c.parameter);
  }
  at::set_num_threads(threads);
  EXPECT_TRUE(same_bits(found[0], found[1]));
  EXPECT_TRUE(same_bits(found[0], found[2]));
}

TEST(MomentumStep, IsSeenByGraphsThatSavedTheParameter) {
  Case c({4, 1});
  c.parameter.requires_grad_(true);
  const auto loss = (c.parameter * c.parameter).sum();
  {
    torch::NoGradGuard no_grad;
    momentum_step(c.parameter, c.gradient, c.momentum, kStep);
  }
  EXPECT_THROW(loss.backward(), c10::Error);
}

}  // namespace
}  // namespace sgdph::test::momentum_step_test
