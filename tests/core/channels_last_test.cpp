// Channels last in float32, the way the lab trains: what our layers compute is what LibTorch's do in float64, but for
// rounding; and a convolution for which that layout is not safe never has it.

#include "support/branch_network.h"
#include "support/derivatives.h"
#include "support/training.h"

#include <gtest/gtest.h>

namespace sgdph::test::channels_last_test {
namespace {

using torch::autograd::grad;

// Of the largest value, for sums of some thousand products of float32 in three layers.
constexpr double kRounding = 1e-4;

bool is_channels_last(const at::Tensor& tensor) {
  return tensor.is_contiguous(at::MemoryFormat::ChannelsLast) && !tensor.is_contiguous();
}

/// Three convolutions with batch norm, the last with a residual.
template <bool kOurs>
struct Network : torch::nn::Module {
  using Layers = BranchNetworkImpl<kOurs>;
  using Conv = typename Layers::Conv;
  using Norm = typename Layers::NormRelu;

  explicit Network(int64_t middle)
      : conv1(Layers::options(3, 32)),
        conv2(Layers::options(32, middle)),
        conv3(Layers::options(middle, 32)),
        bn1(32),
        bn2(middle),
        bn3(32) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
    register_module("conv3", conv3);
    register_module("bn3", bn3);
    register_module("fc", fc);
  }
  at::Tensor forward(at::Tensor x) {
    x = first = Layers::rectified(bn1, conv1->forward(x));
    x = second = conv2->forward(x);
    x = Layers::rectified(bn3, conv3->forward(Layers::rectified(bn2, x)), first);
    return fc->forward(x.mean(std::vector<int64_t>{2, 3}));
  }

  Conv conv1, conv2, conv3;
  Norm bn1, bn2, bn3;
  torch::nn::Linear fc{32, 5};
  at::Tensor first, second;  ///< of the last pass
};

struct Batch {
  at::Tensor images = torch::randn({4, 3, 9, 8}, torch::kFloat64);
  at::Tensor labels = torch::randint(5, {4}, torch::kLong);
};

template <bool kOurs>
at::Tensor loss_of(Network<kOurs>& network, const Batch& batch, at::ScalarType dtype, bool channels_last) {
  auto images = batch.images.to(dtype);
  if (channels_last) images = images.contiguous(at::MemoryFormat::ChannelsLast);
  return torch::nn::functional::cross_entropy(network.forward(images), batch.labels);
}

/// Loss, gradients, and the row sum of every block, ours in float32 against LibTorch's in float64.
void expect_libtorchs_values(int64_t middle, bool safe) {
  torch::manual_seed(41);
  Network<true> ours(middle);
  torch::manual_seed(41);
  Network<false> stock(middle);
  stock.to(torch::kFloat64);
  const Batch batch;
  EXPECT_EQ(nn::to_channels_last(ours), safe);

  const auto expected_loss = loss_of(stock, batch, torch::kFloat64, false);
  const auto expected = grad({expected_loss}, stock.parameters());
  SGDPH optimizer(ours, SGDPHOptions(0).shift_guard(false));
  const auto blocks = optimizer.partition().blocks();
  ASSERT_EQ(blocks, 6);
  for (size_t i = 0; i < blocks; ++i) {
    optimizer.zero_grad();
    const auto loss = loss_of(ours, batch, torch::kFloat32, true);
    EXPECT_TRUE(is_channels_last(ours.first));
    EXPECT_EQ(is_channels_last(ours.second), safe);
    EXPECT_NEAR(loss.item<double>(), expected_loss.item<double>(), 1e-5);
    optimizer.backward(loss);
    const auto parameters = ours.parameters();
    for (size_t k = 0; k < parameters.size(); ++k) {
      EXPECT_LE(relative_difference(parameters[k].grad().to(torch::kFloat64), expected[k]), kRounding) << k;
    }
    optimizer.step();
    const auto& block = optimizer.last_step().blocks_refreshed.at(0);
    const auto same = stock.named_parameters()[block.name];
    const auto gradient = grad({loss_of(stock, batch, torch::kFloat64, false)}, {same}, {}, true, true)[0];
    const auto row_sum = grad({gradient.sum()}, {same})[0];
    EXPECT_LE(relative_difference(block.estimate.to(torch::kFloat64), row_sum), kRounding) << block.name;
  }
}

TEST(ChannelsLast, InFloat32ValuesGradientsAndProductsAreLibTorchsToRounding) {
  expect_libtorchs_values(/*middle=*/48, /*safe=*/true);
}

TEST(ChannelsLast, ANetworkWithAnUnsafeConvolutionIsLeftAloneAndComputesTheSame) {
  expect_libtorchs_values(/*middle=*/24, /*safe=*/false);
}

TEST(ChannelsLast, IsAllOrNothingAndKeepsValues) {
  Network<true> unsafe(24);
  Network<true> safe(32);
  const auto before = safe.conv2->weight.clone();
  EXPECT_FALSE(nn::to_channels_last(unsafe));
  for (const auto& parameter : unsafe.parameters()) EXPECT_TRUE(parameter.is_contiguous());
  EXPECT_TRUE(nn::to_channels_last(safe));
  EXPECT_TRUE(is_channels_last(safe.conv2->weight));
  EXPECT_TRUE(torch::equal(safe.conv2->weight, before));
}

TEST(ChannelsLast, IsSafeForChannelsThatFillVectorsAndForImages) {
  const auto safe = [](int64_t out, int64_t in, int64_t groups = 1) {
    return nn::functional::safe_with_channels_last(torch::zeros({out, in, 3, 3}), groups);
  };
  EXPECT_TRUE(safe(16, 16));
  EXPECT_TRUE(safe(64, 3));
  EXPECT_TRUE(safe(64, 1));
  EXPECT_FALSE(safe(24, 16));
  EXPECT_FALSE(safe(16, 8));
  EXPECT_FALSE(safe(3, 16));
  EXPECT_FALSE(safe(32, 16, 2));
}

TEST(ChannelsLast, ANeighbourCannotHandItToAnUnsafeConvolutionInTheDoubleBackward) {
  torch::manual_seed(43);
  const auto last = [](const at::Tensor& tensor) { return tensor.contiguous(at::MemoryFormat::ChannelsLast); };
  const auto x = torch::randn({2, 32, 6, 6}).requires_grad_(true);
  const auto weight = torch::randn({24, 32, 3, 3}).requires_grad_(true);
  const auto gradient = last(torch::randn({2, 24, 4, 4})).requires_grad_(true);
  const auto y = nn::functional::conv2d(x, weight, {});
  const auto first = grad({y}, {x, weight}, {gradient}, true, /*create_graph=*/true);
  EXPECT_TRUE(first[0].is_contiguous());
  const auto v = last(torch::randn_like(x));
  const auto second = grad({first[0]}, {gradient, weight}, {v});
  EXPECT_TRUE(second[0].is_contiguous());
  EXPECT_TRUE(second[1].is_contiguous());
  EXPECT_LE(relative_difference(second[0], at::conv2d(v.contiguous(), weight.detach())), 1e-5);
}

}  // namespace
}  // namespace sgdph::test::channels_last_test
