// Fused batch norm in use: threads, instruction sets, layouts, repeated passes, and what it leaves to LibTorch.

#include "kernels/batch_norm.h"
#include "kernels/simd.h"

#include "support/batch_norm.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <limits>

namespace sgdph::test::batch_norm_use_test {
namespace {

using torch::autograd::grad;

/// Large enough for several threads, in both layouts and types, rectified.
std::vector<BatchNormCase> large_cases() {
  std::vector<BatchNormCase> cases;
  for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
    for (const bool channels_last : {false, true}) {
      for (const bool training : {false, true}) {
        cases.push_back({{5, 13, 41, 43}, channels_last, training, true, true, true, dtype});
      }
    }
  }
  return cases;
}

/// Value, running statistics, gradients and double gradients, in this order.
Tensors everything(const BatchNormCase& c) {
  torch::manual_seed(17);
  auto inputs = batch_norm_inputs(c);
  for (auto& input : inputs) input.requires_grad_(true);
  auto found = running_statistics(c.sizes[1], c.dtype);
  const auto y = fused_batch_norm(c, inputs, found);
  found.push_back(y.detach());
  auto points = inputs;
  points.push_back(torch::randn(c.sizes, c.dtype).requires_grad_(true));
  const auto first = grad({y}, inputs, {points.back()}, true, /*create_graph=*/true);
  Tensors weights;
  for (const auto& gradient : first) weights.push_back(torch::randn(gradient.sizes(), c.dtype));
  const auto second = grad(first, points, weights, false, false, /*allow_unused=*/true);
  // Without a graph the incoming gradient's memory may be used again.
  const auto plain = grad({y * 1}, inputs, {points.back().detach()});
  for (const auto* list : {&first, &second, &plain}) {
    for (const auto& tensor : *list) found.push_back(tensor.defined() ? tensor.detach() : tensor);
  }
  return found;
}

TEST(BatchNormUse, TheNumberOfThreadsDoesNotChangeABit) {
  const int before = at::get_num_threads();
  for (const auto& c : large_cases()) {
    at::set_num_threads(1);
    const auto expected = everything(c);
    for (const int threads : {2, 3, 5}) {
      at::set_num_threads(threads);
      const auto found = everything(c);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_TRUE(same_bits(found[i], expected[i])) << c << ", " << threads << " threads, tensor " << i;
      }
    }
  }
  at::set_num_threads(before);
}

TEST(BatchNormUse, PortableAndAvx2KernelsAgreeToRounding) {
  const auto before = kernels::simd();
  if (!error_of([] { kernels::use_simd(kernels::Simd::Avx2); }).empty()) GTEST_SKIP() << "this processor has no AVX2";
  auto cases = large_cases();
  for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
    cases.push_back({{3, 5, 7, 3}, false, true, true, true, true, dtype});
    cases.push_back({{3, 5, 7, 3}, true, true, true, true, true, dtype});
  }
  for (const auto& c : cases) {
    kernels::use_simd(kernels::Simd::Avx2);
    const auto avx2 = everything(c);
    kernels::use_simd(kernels::Simd::Portable);
    const auto portable = everything(c);
    const double tolerance = c.dtype == torch::kFloat64 ? 1e-12 : 2e-6;
    for (size_t i = 0; i < avx2.size(); ++i) {
      EXPECT_LE(relative_difference(avx2[i], portable[i]), tolerance) << c << ", tensor " << i;
    }
  }
  kernels::use_simd(before);
}

TEST(BatchNormUse, OneValuePerChannelIsRefusedInTrainingAsLibTorchRefusesIt) {
  namespace F = torch::nn::functional;
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{1, 3}, {1, 4, 1}, {1, 5, 1, 1}}) {
    const auto x = torch::randn(sizes);
    const auto theirs =
        error_of([&] { F::batch_norm(x, at::Tensor(), at::Tensor(), F::BatchNormFuncOptions().training(true)); });
    const BatchNormCase c{sizes, false, true};
    const auto ours = error_of([&] { fused_batch_norm(c, {x, {}, {}, {}}, {{}, {}}); });
    EXPECT_FALSE(theirs.empty());
    EXPECT_EQ(ours, theirs);
    auto evaluation = c;
    evaluation.training = false;
    EXPECT_EQ(
        fused_batch_norm(evaluation, {x, {}, {}, {}}, running_statistics(sizes[1], torch::kFloat32)).dim(), x.dim());
  }
}

TEST(BatchNormUse, WrongShapesAreRefused) {
  const BatchNormCase c{{4, 3, 2, 2}};
  const auto inputs = batch_norm_inputs(c);
  const auto running = running_statistics(3, torch::kFloat64);
  const auto four = torch::ones({4}, torch::kFloat64);
  EXPECT_ERROR(fused_batch_norm(c, {inputs[0], {}, four, {}}, running), "gain", "3 channels");
  EXPECT_ERROR(fused_batch_norm(c, {inputs[0], {}, {}, four}, running), "shift", "3 channels");
  EXPECT_ERROR(fused_batch_norm(c, inputs, {four, four}), "running mean", "3 channels");
  auto evaluation = c;
  evaluation.training = false;
  EXPECT_ERROR(fused_batch_norm(evaluation, inputs, {{}, {}}), "running mean and variance");
}

TEST(BatchNormUse, NotANumberStaysSoThroughTheRectifier) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
    for (const bool channels_last : {false, true}) {
      for (const bool training : {false, true}) {
        const BatchNormCase c{{3, 5, 3, 3}, channels_last, training, true, true, true, dtype};
        torch::manual_seed(19);
        auto inputs = batch_norm_inputs(c);
        inputs[0][1][2][0][1] = std::numeric_limits<double>::quiet_NaN();
        for (auto& input : inputs) input.requires_grad_(true);
        auto ours = running_statistics(5, dtype);
        auto theirs = running_statistics(5, dtype);
        const auto y = fused_batch_norm(c, inputs, ours);
        const auto expected = stock_batch_norm(c, inputs, theirs);
        EXPECT_TRUE(y.isnan().equal(expected.isnan())) << c;
        EXPECT_GT(y.isnan().sum().item<int64_t>(), 0) << c;
        for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(ours[i].isnan().equal(theirs[i].isnan())) << c;
        const auto found = grad({y}, inputs, {torch::ones_like(y)});
        const auto wanted = grad({expected}, inputs, {torch::ones_like(y)});
        for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(found[i].isnan().equal(wanted[i].isnan())) << c << " gradient " << i;
      }
    }
  }
}

TEST(BatchNormUse, InfinityIsNotHidden) {
  const auto infinity = std::numeric_limits<double>::infinity();
  for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
    for (const bool channels_last : {false, true}) {
      for (const auto value : {infinity, -infinity}) {
        for (const int64_t row : {0, 2, 3}) {  // the first, one in the middle, the last
          const BatchNormCase c{{4, 3, 3, 3}, channels_last, true, true, false, true, dtype};
          auto inputs = batch_norm_inputs(c);
          inputs[0][row][1][row == 0 ? 0 : 2][row == 0 ? 0 : 2] = value;
          auto running = running_statistics(3, dtype);
          const auto y = fused_batch_norm(c, inputs, running);
          EXPECT_TRUE(y.select(1, 1).isnan().all().item<bool>()) << row << " " << value;
          EXPECT_TRUE(running[1][1].isnan().item<bool>()) << row << " " << value;
          EXPECT_FALSE(y.select(1, 0).isnan().any().item<bool>());
        }
      }
    }
  }
}

TEST(BatchNormUse, InEvaluationStatisticsMayMoveOnBeforeTheDerivatives) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
    const BatchNormCase c{{4, 3, 2, 2}, false, /*training=*/false, true, true, true, dtype};
    const auto gradients = [&](bool move) {
      torch::manual_seed(31);
      auto inputs = batch_norm_inputs(c);
      for (auto& input : inputs) input.requires_grad_(true);
      auto running = running_statistics(3, dtype);
      const auto y = fused_batch_norm(c, inputs, running);
      if (move) {
        for (auto& statistic : running) statistic.add_(1);
      }
      return grad({(y * y).sum()}, inputs);
    };
    const auto moved = gradients(true);
    const auto still = gradients(false);
    for (size_t i = 0; i < still.size(); ++i) EXPECT_TRUE(same_bits(moved[i], still[i])) << i;
  }
}

TEST(BatchNormUse, LargeMeansKeepTheVariance) {
  const BatchNormCase c{{8, 3, 4, 4}};
  torch::manual_seed(23);
  auto inputs = batch_norm_inputs(c);
  const auto expected = fused_batch_norm(c, inputs, {{}, {}});
  inputs[0] = inputs[0] + 1e6;
  EXPECT_LE(relative_difference(fused_batch_norm(c, inputs, {{}, {}}), expected), 1e-8);
}

TEST(BatchNormUse, TakesInputsThatAreNotContiguous) {
  torch::manual_seed(29);
  const auto check = [](const BatchNormCase& c, Tensors inputs) {
    const auto function = [&](auto batch_norm) {
      return [&, batch_norm](const Tensors& given) {
        return batch_norm(c, given, running_statistics(c.sizes[1], torch::kFloat64));
      };
    };
    DerivativeCheck all;
    all.third = true;
    expect_same_derivatives(function(fused_batch_norm), function(elementary_batch_norm), inputs, all);
  };
  const auto random = [](at::IntArrayRef sizes) { return torch::randn(sizes, torch::kFloat64); };
  const BatchNormCase images{{3, 5, 4, 6}, false, true, true, true};
  const auto gain = random({10}).slice(0, 0, 10, 2);
  const auto shift = random({5}).flip(0);
  check(images, {random({5, 3, 6, 4}).permute({1, 0, 3, 2}), random(images.sizes), gain, shift});
  check(images, {random({3, 10, 4, 6}).slice(1, 0, 10, 2), random({6, 4, 5, 3}).permute({3, 2, 1, 0}), gain, shift});
  check(images, {random(images.sizes), random(images.sizes).contiguous(at::MemoryFormat::ChannelsLast), gain, shift});
  check(images, {random({3, 5, 1, 6}).expand({3, 5, 4, 6}), random(images.sizes), gain, shift});
  check({{4, 5, 7}, false, true, true, true}, {random({7, 5, 4}).permute({2, 1, 0}), random({4, 5, 7}), gain, shift});
  check({{4, 5}, false, true, true, true}, {random({5, 4}).t(), random({4, 5}), gain, shift});
  check(
      {{4, 5, 1, 1}, true, true, true, true},
      {random({4, 1, 1, 5}).permute({0, 3, 1, 2}), random({4, 5, 1, 1}), gain, shift});
}

TEST(BatchNormUse, ExpandedGradientsAndRepeatedPassesGiveTheSame) {
  for (const bool relu : {false, true}) {
    const BatchNormCase c{{3, 5, 4, 3}, false, true, relu, true};
    torch::manual_seed(31);
    auto inputs = batch_norm_inputs(c);
    for (auto& input : inputs) input.requires_grad_(true);
    const auto expected = grad({stock_batch_norm(c, inputs, {{}, {}}).sum()}, inputs);
    const auto loss = fused_batch_norm(c, inputs, {{}, {}}).sum();
    loss.backward({}, /*retain_graph=*/true);
    for (size_t i = 0; i < 4; ++i) EXPECT_LE(relative_difference(inputs[i].grad(), expected[i]), 1e-10) << i;
    loss.backward();
    for (size_t i = 0; i < 4; ++i) EXPECT_LE(relative_difference(inputs[i].grad(), expected[i] * 2), 1e-10) << i;
    EXPECT_ERROR(loss.backward(), "backward through the graph a second time");
  }
}

TEST(BatchNormUse, GradientsShareNoMemoryWithWhatCameIn) {
  for (const bool relu : {false, true}) {
    const BatchNormCase c{{3, 5, 4, 3}, false, true, relu, true};
    torch::manual_seed(37);
    auto inputs = batch_norm_inputs(c);
    for (auto& input : inputs) input.requires_grad_(true);
    const auto gy = torch::randn(c.sizes, torch::kFloat64);
    const auto before = gy.clone();
    fused_batch_norm(c, inputs, {{}, {}}).backward(gy);
    EXPECT_TRUE(same_bits(gy, before));
    for (const auto& input : inputs) input.grad().add_(1);
    EXPECT_TRUE(same_bits(gy, before)) << "relu " << relu;
    EXPECT_FALSE(inputs[0].grad().is_alias_of(inputs[1].grad()));
  }
}

TEST(BatchNormUse, AGradientHeldByOthersIsNotWrittenOver) {
  const BatchNormCase c{{3, 5, 4, 3}, false, true, true, false};
  torch::manual_seed(41);
  auto inputs = batch_norm_inputs(c);
  for (const size_t i : {0, 2, 3}) inputs[i].requires_grad_(true);
  const auto y = fused_batch_norm(c, inputs, {{}, {}});
  y.retain_grad();
  at::Tensor seen;
  y.register_hook([&](const at::Tensor& gradient) { seen = gradient; });
  const auto weights = torch::randn(c.sizes, torch::kFloat64);
  // The same gradient also goes to another branch.
  const auto other = torch::zeros(c.sizes, torch::kFloat64).requires_grad_(true);
  ((y + other) * weights).sum().backward();
  EXPECT_TRUE(same_bits(seen, weights));
  EXPECT_TRUE(same_bits(y.grad(), weights));
  EXPECT_TRUE(same_bits(other.grad(), weights));
}

TEST(BatchNormUse, WhatTheKernelsDoNotTakeGoesToLibTorch) {
  torch::manual_seed(43);
  const auto same = [](const BatchNormCase& c, const Tensors& inputs, const Tensors& running) {
    at::Tensor ours, theirs;
    const auto our_error = error_of([&] { ours = fused_batch_norm(c, inputs, running); });
    const auto their_error = error_of([&] { theirs = stock_batch_norm(c, inputs, running); });
    EXPECT_EQ(our_error, their_error) << c;
    EXPECT_TRUE(same_bits(ours, theirs)) << c;
  };
  for (const auto dtype : {torch::kBFloat16, torch::kFloat16, torch::kInt64}) {
    BatchNormCase c{{4, 3, 2, 2}, false, false, true, true, true, dtype};
    auto inputs = batch_norm_inputs({c.sizes, false, false, true, true, true});
    for (auto& input : inputs) input = input.to(dtype);
    same(c, inputs, running_statistics(3, dtype));
  }
  BatchNormCase mixed{{4, 3, 2, 2}, false, false, false, false};
  auto inputs = batch_norm_inputs(mixed);
  inputs[0] = inputs[0].to(torch::kBFloat16);
  for (const size_t i : {2, 3}) inputs[i] = inputs[i].to(torch::kFloat32);
  same(mixed, inputs, running_statistics(3, torch::kFloat32));
  const BatchNormCase empty{{0, 3, 2, 2}, false, true, true, true};
  same(empty, batch_norm_inputs(empty), {{}, {}});
  // A residual that has to be expanded.
  BatchNormCase expanded{{4, 3, 2, 2}, false, false, true, true};
  inputs = batch_norm_inputs(expanded);
  inputs[1] = torch::randn({1, 3, 1, 1}, torch::kFloat64);
  same(expanded, inputs, running_statistics(3, torch::kFloat64));
  same(expanded, {torch::randn({3}, torch::kFloat64), {}, {}, {}}, running_statistics(3, torch::kFloat64));
}

}  // namespace
}  // namespace sgdph::test::batch_norm_use_test
