// Our layers have the options, names, state and behaviour of LibTorch's.

#include <sgdph/nn.h>

#include "support/derivatives.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <sstream>

namespace sgdph::test::nn_modules_test {
namespace {

using torch::nn::BatchNormOptions;
using torch::nn::Conv2dOptions;

/// Saves one module and loads it into the other.
template <class From, class To>
void transfer(const From& from, To& to) {
  std::stringstream stream;
  torch::save(from, stream);
  torch::load(to, stream);
}

void expect_same_names(const torch::nn::Module& ours, const torch::nn::Module& stock) {
  EXPECT_EQ(ours.named_parameters().keys(), stock.named_parameters().keys());
  EXPECT_EQ(ours.named_buffers().keys(), stock.named_buffers().keys());
  for (const auto& item : stock.named_parameters()) {
    EXPECT_EQ(ours.named_parameters()[item.key()].sizes(), item.value().sizes()) << item.key();
  }
}

void expect_same_state(const torch::nn::Module& ours, const torch::nn::Module& stock) {
  for (const auto& item : stock.named_parameters()) {
    EXPECT_TRUE(same_bits(ours.named_parameters()[item.key()], item.value())) << item.key();
  }
  for (const auto& item : stock.named_buffers()) {
    const auto buffer = ours.named_buffers()[item.key()];
    EXPECT_LE(relative_difference(buffer, item.value()), 1e-12) << item.key();
    EXPECT_EQ(buffer.scalar_type(), item.value().scalar_type()) << item.key();
  }
}

template <class Module>
std::string printed(const Module& module) {
  std::ostringstream out;
  out << module;
  return out.str();
}

std::vector<std::pair<std::string, Conv2dOptions>> convolutions() {
  const auto base = Conv2dOptions(4, 6, 3);
  return {
      {"plain", base},
      {"no bias", Conv2dOptions(base).bias(false)},
      {"stride and padding", Conv2dOptions(base).stride({2, 1}).padding({1, 2})},
      {"groups and dilation", Conv2dOptions(base).groups(2).dilation(2).padding(2)},
      {"same", Conv2dOptions(base).padding(torch::kSame)},
      {"valid", Conv2dOptions(base).padding(torch::kValid)},
      {"reflect", Conv2dOptions(base).padding({1, 2}).padding_mode(torch::kReflect)},
      {"replicate", Conv2dOptions(base).padding(1).padding_mode(torch::kReplicate)},
      {"circular", Conv2dOptions(base).padding(1).padding_mode(torch::kCircular)},
      {"circular same, even kernel", Conv2dOptions(4, 6, 4).padding(torch::kSame).padding_mode(torch::kCircular)}};
}

TEST(NnModules, Conv2dIsLibTorchsWithEveryOption) {
  for (const auto& [name, options] : convolutions()) {
    SCOPED_TRACE(name);
    torch::manual_seed(1);
    torch::nn::Conv2d stock(options);
    torch::manual_seed(1);
    nn::Conv2d ours(options);
    expect_same_names(*ours, *stock);
    expect_same_state(*ours, *stock);
    for (auto* module : {static_cast<torch::nn::Module*>(ours.get()), static_cast<torch::nn::Module*>(stock.get())}) {
      module->to(torch::kFloat64);
    }
    for (const auto& sizes : std::vector<std::vector<int64_t>>{{2, 4, 9, 8}, {4, 9, 8}}) {
      const auto run = [&](auto& module) {
        torch::manual_seed(2);
        const auto x = torch::randn(sizes, torch::kFloat64).requires_grad_(true);
        auto points = module->parameters();
        points.push_back(x);
        const auto y = module->forward(x);
        auto found = torch::autograd::grad({y.pow(3).sum()}, points, {}, true, true);
        Tensors squares;
        for (const auto& gradient : found) squares.push_back(gradient.square().sum());
        const auto second = torch::autograd::grad({torch::stack(squares).sum()}, points);
        found.insert(found.end(), second.begin(), second.end());
        found.push_back(y);
        return found;
      };
      // LibTorch's circular padding wants a batch.
      const auto error = error_of([&] { run(stock); });
      EXPECT_EQ(error_of([&] { run(ours); }), error);
      EXPECT_TRUE(error.empty() || sizes.size() == 3) << error;
      if (!error.empty()) continue;
      const auto found = run(ours);
      const auto expected = run(stock);
      for (size_t i = 0; i < found.size(); ++i) EXPECT_LE(relative_difference(found[i], expected[i]), 1e-10) << i;
    }
    transfer(stock, ours);
    transfer(ours, stock);
    expect_same_state(*ours, *stock);
  }
}

TEST(NnModules, Conv2dMayTakeOverAStockLayer) {
  const torch::nn::Conv2d stock(Conv2dOptions(3, 4, 3));
  const nn::Conv2d ours(std::make_shared<nn::Conv2dImpl>(*stock));
  expect_same_names(*ours, *stock);
  ASSERT_EQ(ours->parameters().size(), 2);
  EXPECT_TRUE(ours->weight.is_same(stock->weight));
  EXPECT_TRUE(ours->parameters()[1].is_same(stock->bias));
}

/// A clone is of the same type, equal, and shares no memory.
template <class Holder>
void expect_clones(const Holder& module) {
  const auto copy = module->clone();
  ASSERT_NE(std::dynamic_pointer_cast<typename Holder::ContainedType>(copy), nullptr);
  expect_same_names(*copy, *module);
  expect_same_state(*copy, *module);
  const auto all = [](const torch::nn::Module& of) {
    auto tensors = of.parameters();
    for (const auto& buffer : of.buffers()) tensors.push_back(buffer);
    return tensors;
  };
  const auto ours = all(*module);
  const auto theirs = all(*copy);
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_FALSE(ours[i].is_alias_of(theirs[i])) << i;
  // The members are the registered tensors.
  EXPECT_TRUE(std::dynamic_pointer_cast<typename Holder::ContainedType>(copy)->weight.is_same(copy->parameters()[0]));
}

TEST(NnModules, ClonesAreOfTheSameTypeWithTensorsOfTheirOwn) {
  expect_clones(nn::Conv2d(Conv2dOptions(3, 4, 3)));
  expect_clones(nn::BatchNorm2d(4));
  expect_clones(nn::BatchNormReLU2d(4));
  torch::nn::Sequential network(nn::Conv2d(Conv2dOptions(3, 4, 3)), nn::BatchNorm2d(4), nn::BatchNormReLU2d(4));
  const auto copy = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(network->clone());
  ASSERT_NE(copy, nullptr);
  EXPECT_NE(copy->ptr(0)->as<nn::Conv2dImpl>(), nullptr);
  EXPECT_NE(copy->ptr(1)->as<nn::BatchNorm2dImpl>(), nullptr);
  EXPECT_NE(copy->ptr(2)->as<nn::BatchNormReLU2dImpl>(), nullptr);
  const auto x = torch::randn({2, 3, 5, 5});
  EXPECT_TRUE(same_bits(copy->forward(x), network->forward(x)));
}

std::vector<std::pair<std::string, BatchNormOptions>> norms() {
  return {
      {"plain", BatchNormOptions(5)},
      {"momentum and eps", BatchNormOptions(5).momentum(0.3).eps(1e-2)},
      {"cumulative", BatchNormOptions(5).momentum(c10::nullopt)},
      {"not affine", BatchNormOptions(5).affine(false)},
      {"not tracking", BatchNormOptions(5).track_running_stats(false)},
      {"neither", BatchNormOptions(5).affine(false).track_running_stats(false)}};
}

template <class Ours>
void expect_norms_agree(bool relu) {
  for (const auto& [name, options] : norms()) {
    SCOPED_TRACE(name);
    torch::nn::BatchNorm2d stock(options);
    Ours ours(options);
    expect_same_names(*ours, *stock);
    expect_same_state(*ours, *stock);
    stock->to(torch::kFloat64);
    ours->to(torch::kFloat64);
    torch::manual_seed(3);
    for (const bool training : {true, true, false, true, false}) {
      stock->train(training);
      ours->train(training);
      const auto x = torch::randn({3, 5, 4, 3}, torch::kFloat64) * 2 + 1;
      auto expected = stock->forward(x);
      if (relu) expected = expected.relu();
      EXPECT_LE(relative_difference(ours->forward(x), expected), 1e-12);
      expect_same_state(*ours, *stock);
    }
    // Into the other, and on from there.
    stock->forward(torch::randn({3, 5, 4, 3}, torch::kFloat64));
    transfer(stock, ours);
    expect_same_state(*ours, *stock);
    ours->train();
    ours->forward(torch::randn({3, 5, 4, 3}, torch::kFloat64));
    transfer(ours, stock);
    expect_same_state(*ours, *stock);
    EXPECT_ERROR(ours->forward(torch::randn({3, 5, 4}, torch::kFloat64)), "expected 4D input (got 3D input)");
  }
}

TEST(NnModules, BatchNormIsLibTorchsWithEveryOption) {
  expect_norms_agree<nn::BatchNorm2d>(false);
}

TEST(NnModules, BatchNormWithRectifierIsLibTorchsAndTheRectifier) {
  expect_norms_agree<nn::BatchNormReLU2d>(true);
}

TEST(NnModules, BatchNormRefusesWhatLibTorchsRefuses) {
  torch::nn::BatchNorm2d stock(3);
  nn::BatchNorm2d ours(3);
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{2, 3}, {1, 3, 1, 1}}) {
    const auto x = torch::randn(sizes);
    const auto expected = error_of([&] { stock->forward(x); });
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(error_of([&] { ours->forward(x); }), expected);
  }
  EXPECT_FALSE(error_of([&] { ours->forward(torch::randn({2, 4, 2, 2})); }).empty());
}

TEST(NnModules, BatchNormWithRectifierTakesAResidual) {
  torch::manual_seed(4);
  nn::BatchNormReLU2d fused(3);
  torch::nn::BatchNorm2d stock(3);
  const auto x = torch::randn({2, 3, 4, 4});
  const auto residual = torch::randn({2, 3, 4, 4});
  EXPECT_LE(relative_difference(fused->forward(x, residual), (stock->forward(x) + residual).relu()), 1e-6);
}

TEST(NnModules, StandInASequential) {
  torch::manual_seed(5);
  torch::nn::Sequential ours(
      nn::Conv2d(Conv2dOptions(3, 4, 3)), nn::BatchNorm2d(4), nn::Conv2d(Conv2dOptions(4, 5, 3).padding(1)),
      nn::BatchNormReLU2d(5));
  torch::nn::Sequential stock(
      torch::nn::Conv2d(Conv2dOptions(3, 4, 3)), torch::nn::BatchNorm2d(4),
      torch::nn::Conv2d(Conv2dOptions(4, 5, 3).padding(1)), torch::nn::BatchNorm2d(5));
  const auto x = torch::randn({2, 3, 6, 6}, torch::kFloat64);
  transfer(ours, stock);
  ours->to(torch::kFloat64);
  stock->to(torch::kFloat64);
  EXPECT_LE(relative_difference(ours->forward(x), stock->forward(x).relu()), 1e-12);
  expect_same_state(*ours, *stock);
}

TEST(NnModules, PrintTheirOptions) {
  const auto conv = printed(nn::Conv2d(Conv2dOptions(3, 4, 5).stride(2)));
  for (const auto* text : {"Conv2d(3, 4", "kernel_size=[5, 5]", "stride=[2, 2]"}) {
    EXPECT_NE(conv.find(text), std::string::npos) << conv;
  }
  const auto options = BatchNormOptions(7).momentum(0.25).affine(false);
  const auto after_name = [](const std::string& text) { return text.substr(text.find('(')); };
  const auto stock = printed(torch::nn::BatchNorm2d(options));
  EXPECT_EQ(after_name(printed(nn::BatchNorm2d(options))), after_name(stock));
  EXPECT_EQ(after_name(printed(nn::BatchNormReLU2d(options))), after_name(stock));
  EXPECT_NE(printed(nn::BatchNorm2d(options)).find("BatchNorm2d"), std::string::npos);
  EXPECT_NE(
      printed(nn::BatchNorm2d(BatchNormOptions(7).momentum(c10::nullopt))).find("momentum=None"), std::string::npos);
}

}  // namespace
}  // namespace sgdph::test::nn_modules_test
