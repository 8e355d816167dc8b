// The fused step is its formula, for whatever layout it takes.

#include "kernels/momentum_step.h"
#include "kernels/simd.h"
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

TEST(MomentumStep, WithoutABufferIsTheSameAsWithOneThatHasNoWeight) {
  auto step = kStep;
  step.keep = 0;
  for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
    Case with({31, 3}, dtype), without({31, 3}, dtype);
    ASSERT_TRUE(momentum_step_takes(without.parameter, without.gradient, {}));
    momentum_step(with.parameter, with.gradient, with.momentum, step);
    momentum_step(without.parameter, without.gradient, {}, step);
    EXPECT_TRUE(same_bits(with.parameter, without.parameter));
  }
}

TEST(MomentumStep, HasTheSameBitsWhateverStandsBeside) {
  // Values go through the kernel several at a time, the last few one by one.
  Case whole({67, 1});
  const Case start({67, 1});
  momentum_step(whole.parameter, whole.gradient, whole.momentum, kStep);
  for (int64_t from = 0; from < 67; from += 5) {
    const auto part = [&](const at::Tensor& tensor) { return tensor.slice(0, from).clone(); };
    const auto parameter = part(start.parameter), gradient = part(start.gradient), momentum = part(start.momentum);
    momentum_step(parameter, gradient, momentum, kStep);
    EXPECT_TRUE(same_bits(parameter, part(whole.parameter))) << from;
    EXPECT_TRUE(same_bits(momentum, part(whole.momentum))) << from;
  }
}

TEST(MomentumStep, HasTheSameBitsWithAnyVectors) {
  const auto best = kernels::simd();
  if (best == kernels::Simd::Portable) GTEST_SKIP() << "this processor has one kind";
  for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
    Case by_best({1001, 1}, dtype), by_portable({1001, 1}, dtype);
    momentum_step(by_best.parameter, by_best.gradient, by_best.momentum, kStep);
    kernels::use_simd(kernels::Simd::Portable);
    momentum_step(by_portable.parameter, by_portable.gradient, by_portable.momentum, kStep);
    kernels::use_simd(best);
    EXPECT_TRUE(same_bits(by_best.parameter, by_portable.parameter));
    EXPECT_TRUE(same_bits(by_best.momentum, by_portable.momentum));
  }
}

TEST(MomentumStep, LeavesTensorsThatShareMemoryToOthers) {
  const Case c({8, 1});
  EXPECT_FALSE(momentum_step_takes(c.parameter, c.parameter, c.momentum));
  EXPECT_FALSE(momentum_step_takes(c.parameter, c.gradient, c.parameter));
  EXPECT_FALSE(momentum_step_takes(c.parameter, c.gradient, c.gradient));
  const auto memory = torch::zeros({12, 1}, torch::kFloat64);
  EXPECT_FALSE(momentum_step_takes(memory.slice(0, 0, 8), memory.slice(0, 4, 12), {}));
  EXPECT_TRUE(momentum_step_takes(memory.slice(0, 0, 6), memory.slice(0, 6, 12), {}));
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
