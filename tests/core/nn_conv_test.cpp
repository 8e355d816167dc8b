// Our convolution is LibTorch's, and its derivatives are, whatever comes in and is asked for.

#include <sgdph/nn.h>

#include "support/derivatives.h"
#include "support/training.h"

#include <gtest/gtest.h>

namespace sgdph::test::nn_conv_test {
namespace {

namespace F = sgdph::nn::functional;

struct ConvCase {
  std::string name;
  std::vector<int64_t> input;
  int64_t out = 0;
  std::array<int64_t, 2> kernel{1, 1};
  F::Conv2dOptions options = {};
};

std::vector<ConvCase> cases() {
  std::vector<ConvCase> found{
      {"1x1", {2, 3, 4, 5}, 4, {1, 1}},
      {"1x1 on one value", {2, 3, 1, 1}, 4, {1, 1}},
      {"3x3", {2, 3, 5, 7}, 4, {3, 3}},
      {"3x3 padded", {2, 3, 5, 7}, 4, {3, 3}},
      {"3x3 on one value", {3, 2, 1, 1}, 3, {3, 3}},
      {"3x3 on 2x2", {2, 2, 2, 2}, 3, {3, 3}},
      {"5x3", {2, 3, 7, 5}, 2, {5, 3}},
      {"stride", {2, 3, 7, 8}, 4, {3, 3}},
      {"stride that leaves a rest", {2, 3, 8, 9}, 4, {2, 3}},
      {"1x1 with stride", {2, 3, 5, 4}, 4, {1, 1}},
      {"dilation", {2, 3, 7, 9}, 2, {3, 3}},
      {"groups", {2, 4, 5, 5}, 6, {3, 3}},
      {"depthwise", {2, 3, 5, 4}, 3, {3, 3}},
      {"depthwise with multiplier", {2, 3, 5, 4}, 6, {3, 3}},
      {"one channel", {3, 1, 4, 5}, 1, {3, 3}},
      {"everything", {1, 4, 9, 8}, 6, {3, 2}}};
  const auto with = [&](const std::string& name) -> F::Conv2dOptions& {
    for (auto& c : found) {
      if (c.name == name) return c.options;
    }
    throw std::out_of_range(name);
  };
  with("3x3 padded").padding = {1, 1};
  with("3x3 on one value").padding = {1, 1};
  with("3x3 on 2x2").padding = {1, 2};
  with("5x3").padding = {2, 0};
  with("stride") = {{2, 3}, {1, 1}, {1, 1}, 1};
  with("stride that leaves a rest") = {{3, 2}, {0, 0}, {1, 1}, 1};
  with("1x1 with stride").stride = {2, 2};
  with("dilation") = {{1, 1}, {2, 1}, {2, 3}, 1};
  with("groups") = {{1, 1}, {1, 1}, {1, 1}, 2};
  with("depthwise") = {{1, 1}, {1, 1}, {1, 1}, 3};
  with("depthwise with multiplier") = {{2, 1}, {1, 1}, {1, 1}, 3};
  with("one channel").padding = {1, 1};
  with("everything") = {{2, 1}, {2, 1}, {2, 3}, 2};
  return found;
}

Tensors inputs_of(const ConvCase& c, bool bias, torch::Dtype dtype = torch::kFloat64) {
  torch::manual_seed(3);
  Tensors inputs(3);
  inputs[0] = torch::randn(c.input, dtype);
  inputs[1] = torch::randn({c.out, c.input[1] / c.options.groups, c.kernel[0], c.kernel[1]}, dtype);
  if (bias) inputs[2] = torch::randn({c.out}, dtype);
  return inputs;
}

at::Tensor ours(const ConvCase& c, const Tensors& inputs) {
  return F::conv2d(inputs[0], inputs[1], inputs[2], c.options);
}

at::Tensor stock(const ConvCase& c, const Tensors& inputs) {
  const auto& o = c.options;
  return at::conv2d(inputs[0], inputs[1], inputs[2], o.stride, o.padding, o.dilation, o.groups);
}

TEST(NnConv2d, AgreesWithLibTorchForWhateverComesInAndIsAskedFor) {
  for (const auto& c : cases()) {
    for (const bool bias : {false, true}) {
      for (const bool channels_last : {false, true}) {
        SCOPED_TRACE(c.name + (bias ? " with bias" : "") + (channels_last ? " channels last" : ""));
        auto inputs = inputs_of(c, bias);
        if (channels_last) {
          for (size_t i = 0; i < 2; ++i) inputs[i] = inputs[i].contiguous(at::MemoryFormat::ChannelsLast);
        }
        DerivativeCheck check;
        check.third = true;
        expect_same_derivatives(
            [&](const Tensors& given) { return ours(c, given); }, [&](const Tensors& given) { return stock(c, given); },
            inputs, check);
      }
    }
  }
}

TEST(NnConv2d, IsDifferentiatedRightWhereWhatComesInDependsOnTheInput) {
  const ConvCase c{"", {2, 3, 4, 5}, 3, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, 1}};
  const auto function = [&](auto conv) {
    return [&c, conv](const Tensors& given) {
      const auto y = conv(c, {conv(c, given).tanh() * given[0], given[1], given[2]});
      return y * y + given[0] * y;
    };
  };
  DerivativeCheck check;
  check.third = true;
  expect_same_derivatives(function(ours), function(stock), inputs_of(c, true), check);
}

TEST(NnConv2d, ValueAndGradientHaveTheBitsOfLibTorchs) {
  for (const auto dtype : {torch::kFloat32, torch::kFloat64}) {
    for (const auto& c : cases()) {
      auto inputs = inputs_of(c, true, dtype);
      for (auto& input : inputs) input.requires_grad_(true);
      const auto a = ours(c, inputs);
      const auto b = stock(c, inputs);
      EXPECT_TRUE(same_bits(a, b)) << c.name;
      const auto found = torch::autograd::grad({a.square().sum()}, inputs);
      const auto expected = torch::autograd::grad({b.square().sum()}, inputs);
      for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(found[i], expected[i])) << c.name << " gradient " << i;
    }
  }
}

TEST(NnConv2d, GradientsOfSomeInputsAreThoseOfAll) {
  for (size_t bits = 1; bits < 8; ++bits) {
    const auto c = cases()[4];
    auto inputs = inputs_of(c, true);
    for (size_t i = 0; i < 3; ++i) inputs[i].requires_grad_((bits >> i & 1) != 0);
    const auto asked = subset(inputs, bits);
    const auto found = torch::autograd::grad({ours(c, inputs).pow(3).sum()}, asked, {}, true, true);
    const auto expected = torch::autograd::grad({stock(c, inputs).pow(3).sum()}, asked, {}, true, true);
    const auto second = [&](const Tensors& first) {
      at::Tensor sum;
      for (const auto& gradient : first) sum = sum.defined() ? sum + gradient.square().sum() : gradient.square().sum();
      return torch::autograd::grad({sum}, asked);
    };
    const auto found_second = second(found);
    const auto expected_second = second(expected);
    for (size_t i = 0; i < asked.size(); ++i) {
      EXPECT_LE(relative_difference(found[i], expected[i]), 1e-10) << bits;
      EXPECT_LE(relative_difference(found_second[i], expected_second[i]), 1e-10) << bits;
    }
  }
}

TEST(NnConv2d, TakesInputsAndWeightsThatAreNotContiguous) {
  torch::manual_seed(9);
  const auto random = [](at::IntArrayRef sizes) { return torch::randn(sizes, torch::kFloat64); };
  const ConvCase c{"", {2, 3, 4, 5}, 4, {3, 2}, {{1, 1}, {1, 0}, {1, 1}, 1}};
  const auto check = [&](const Tensors& inputs) {
    DerivativeCheck all;
    all.third = true;
    expect_same_derivatives(
        [&](const Tensors& given) { return ours(c, given); }, [&](const Tensors& given) { return stock(c, given); },
        inputs, all);
  };
  check({random({5, 3, 4, 2}).permute({3, 1, 2, 0}), random({4, 3, 3, 2}), random({4})});
  check(
      {random({2, 1, 4, 5}).expand({2, 3, 4, 5}), random({3, 4, 2, 3}).permute({1, 0, 3, 2}),
       random({8}).slice(0, 0, 8, 2)});
  check({random({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast), random({4, 3, 3, 2}), {}});
}

TEST(NnConv2d, ExpandedGradientsAndRepeatedPassesGiveTheSame) {
  const auto c = cases()[3];
  auto inputs = inputs_of(c, true);
  for (auto& input : inputs) input.requires_grad_(true);
  const auto expected = torch::autograd::grad({stock(c, inputs).sum()}, inputs);
  const auto loss = ours(c, inputs).sum();
  loss.backward({}, /*retain_graph=*/true);
  loss.backward();
  for (size_t i = 0; i < 3; ++i) EXPECT_LE(relative_difference(inputs[i].grad(), expected[i] * 2), 1e-12) << i;
  EXPECT_ERROR(loss.backward(), "second time");
}

TEST(NnConv2d, SeesThatASavedInputWasChanged) {
  const auto c = cases()[3];
  auto inputs = inputs_of(c, false);
  inputs[1].requires_grad_(true);
  const auto loss = ours(c, inputs).sum();
  inputs[0].add_(1);
  EXPECT_ERROR(loss.backward(), "modified by an inplace operation");
}

TEST(NnConv2d, WhatItDoesNotTakeGoesToLibTorch) {
  const auto same = [](const ConvCase& c, const Tensors& inputs) {
    at::Tensor found, expected;
    const auto our_error = error_of([&] { found = ours(c, inputs); });
    const auto their_error = error_of([&] { expected = stock(c, inputs); });
    EXPECT_EQ(our_error, their_error);
    EXPECT_TRUE(same_bits(found, expected));
    return our_error;
  };
  const auto c = cases()[3];
  const auto inputs = inputs_of(c, true);
  for (const auto dtype : {torch::kBFloat16, torch::kFloat16, torch::kInt64}) {
    Tensors typed;
    for (const auto& input : inputs) typed.push_back(input.to(dtype));
    same(c, typed);
  }
  EXPECT_TRUE(same(c, {inputs[0][0], inputs[1], inputs[2]}).empty()) << "an input without a batch";
  EXPECT_TRUE(same(c, {inputs[0].narrow(0, 0, 0), inputs[1], inputs[2]}).empty()) << "an empty batch";
  EXPECT_FALSE(same(c, {inputs[0].to(torch::kFloat32), inputs[1], inputs[2]}).empty()) << "two types";
  EXPECT_FALSE(same(c, {inputs[0].narrow(1, 0, 2), inputs[1], inputs[2]}).empty()) << "wrong channels";
  EXPECT_FALSE(same(c, {inputs[0].narrow(2, 0, 1).narrow(3, 0, 1).narrow(1, 0, 1), inputs[1], {}}).empty());
  EXPECT_FALSE(same(c, {inputs[0], inputs[1], inputs[2].narrow(0, 0, 2)}).empty()) << "a short bias";
}

TEST(NnConv2d, WorksWithoutAGraph) {
  const auto c = cases()[3];
  auto inputs = inputs_of(c, true);
  for (auto& input : inputs) input.requires_grad_(true);
  {
    const torch::NoGradGuard no_grad;
    EXPECT_FALSE(ours(c, inputs).requires_grad());
  }
  const c10::InferenceMode inference;
  EXPECT_TRUE(same_bits(ours(c, inputs), stock(c, inputs)));
}

}  // namespace
}  // namespace sgdph::test::nn_conv_test
