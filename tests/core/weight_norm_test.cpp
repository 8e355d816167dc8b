// Weight-normalised layers compute what the plain layer computes, and can be differentiated twice.

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <sstream>

namespace sgdph::test::weight_norm_test {
namespace {

namespace nn = torch::nn;

std::vector<std::pair<std::string, nn::Conv2dOptions>> convolutions() {
  const nn::Conv2dOptions base(4, 6, 3);
  auto with = [&](auto change) {
    auto options = base;
    change(options);
    return options;
  };
  return {
      {"plain", base},
      {"no bias", with([](auto& o) { o.bias(false); })},
      {"stride and padding", with([](auto& o) {
         o.stride({2, 1}).padding({1, 2});
       })},
      {"groups and dilation", with([](auto& o) { o.groups(2).dilation(2).padding(2); })},
      {"same", with([](auto& o) { o.padding(torch::kSame); })},
      {"valid", with([](auto& o) { o.padding(torch::kValid); })},
      {"reflect", with([](auto& o) {
         o.padding({1, 2}).padding_mode(torch::kReflect);
       })},
      {"replicate", with([](auto& o) { o.padding(1).padding_mode(torch::kReplicate); })},
      {"circular same, even kernel",
       with([](auto& o) { o.kernel_size(4).padding(torch::kSame).padding_mode(torch::kCircular); })},
  };
}

TEST(WeightNormConv2d, ComputesWhatThePlainLayerComputes) {
  for (const auto& [name, options] : convolutions()) {
    torch::manual_seed(1);
    nn::Conv2d plain(options);
    plain->to(torch::kFloat64);
    WeightNormConv2d normed(plain);
    const auto x = torch::randn({2, 4, 9, 8}, torch::kFloat64);
    EXPECT_TRUE(torch::allclose(normed(x), plain(x), 1e-12, 1e-12)) << name;
    EXPECT_EQ(normed->gain.dim(), 1);
    EXPECT_EQ(normed->gain.size(0), 6);
  }
}

TEST(WeightNormLinear, ComputesWhatThePlainLayerComputes) {
  for (const bool bias : {true, false}) {
    nn::Linear plain(nn::LinearOptions(5, 3).bias(bias));
    plain->to(torch::kFloat64);
    WeightNormLinear normed(plain);
    const auto x = torch::randn({7, 5}, torch::kFloat64);
    EXPECT_TRUE(torch::allclose(normed(x), plain(x), 1e-12, 1e-12));
  }
}

TEST(WeightNorm, AChannelOfZerosStaysZeroAndDifferentiable) {
  nn::Linear plain(3, 2);
  torch::NoGradGuard no_grad;
  plain->weight[1].zero_();
  WeightNormLinear normed(plain);
  torch::AutoGradMode grad(true);
  const auto out = normed(torch::ones({1, 3}));
  EXPECT_TRUE(torch::allclose(out, plain(torch::ones({1, 3}))));
  out.sum().backward();
  for (const auto& parameter : normed->parameters()) EXPECT_TRUE(parameter.grad().isfinite().all().item<bool>());
}

TEST(WeightNorm, WeightDependsOnTheDirectionOnlyThroughItsAngle) {
  WeightNormConv2d layer(nn::Conv2dOptions(2, 3, 3));
  const auto before = layer->weight().detach().clone();
  torch::NoGradGuard no_grad;
  layer->direction.mul_(7);
  EXPECT_TRUE(torch::allclose(layer->weight(), before, 1e-5, 1e-7));
  EXPECT_TRUE(torch::allclose(layer->weight().flatten(1).norm(2, 1), layer->gain, 1e-5));
}

TEST(WeightNorm, SecondDerivativesAgreeWithFiniteDifferences) {
  auto problem = make_problem("WeightNorm");
  for (const auto& item : problem.model->named_parameters()) {
    const auto& parameter = item.value();
    const auto direction = torch::randn_like(parameter);
    const auto gradient = torch::autograd::grad({problem.loss()}, {parameter}, {}, true, true)[0];
    const auto product = torch::autograd::grad({gradient}, {parameter}, {direction})[0];
    const auto gradient_at = [&](double shift) {
      {
        torch::NoGradGuard no_grad;
        parameter.add_(direction, shift);
      }
      auto result = torch::autograd::grad({problem.loss()}, {parameter})[0];
      torch::NoGradGuard no_grad;
      parameter.sub_(direction, shift);
      return result;
    };
    const double h = 1e-5;
    EXPECT_TRUE(torch::allclose(product, (gradient_at(h) - gradient_at(-h)) / (2 * h), 1e-5, 1e-8)) << item.key();
  }
}

TEST(WeightNorm, ClonesAndSavesLikeAnyModule) {
  WeightNormConv2d layer(nn::Conv2dOptions(2, 3, 3));
  const auto copy = std::dynamic_pointer_cast<WeightNormConv2dImpl>(layer->clone());
  const auto x = torch::randn({1, 2, 5, 5});
  EXPECT_TRUE(torch::equal(copy->forward(x), layer(x)));
  std::stringstream file;
  torch::save(layer, file);
  WeightNormConv2d loaded(nn::Conv2dOptions(2, 3, 3));
  torch::load(loaded, file);
  EXPECT_TRUE(torch::equal(loaded(x), layer(x)));
}

TEST(WeightNorm, IsBuiltFromSizesAlone) {
  EXPECT_EQ(WeightNormConv2d(3, 8, 3)->direction.sizes(), at::IntArrayRef({8, 3, 3, 3}));
  EXPECT_EQ(WeightNormLinear(3, 8)->direction.sizes(), at::IntArrayRef({8, 3}));
}

TEST(WeightNormConv2d, RefusesImpossibleChannels) {
  EXPECT_ERROR(WeightNormConv2d(nn::Conv2dOptions(3, 4, 3).groups(2)), "in_channels 3", "groups 2");
}

}  // namespace
}  // namespace sgdph::test::weight_norm_test
