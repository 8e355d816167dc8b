// Frozen running statistics keep every bit while the batch's own are used, and come back.

#include <sgdph/frozen_statistics.h>
#include <sgdph/nn.h>

#include "support/branch_network.h"
#include "support/derivatives.h"

#include <gtest/gtest.h>

namespace sgdph::test::frozen_statistics_test {
namespace {

Tensors copies(const Tensors& tensors) {
  Tensors found;
  for (const auto& tensor : tensors) found.push_back(tensor.clone());
  return found;
}

void expect_same(const Tensors& found, const Tensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(same_bits(found[i], expected[i])) << "tensor " << i;
}

bool any_differs(const Tensors& a, const Tensors& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) return true;
  }
  return false;
}

/// A layer with one dimension's input, for each kind that keeps running statistics.
std::vector<std::pair<torch::nn::AnyModule, std::vector<int64_t>>> layers() {
  using torch::nn::AnyModule;
  const auto tracked = [](auto options) { return options.track_running_stats(true).affine(true); };
  return {
      {AnyModule(torch::nn::BatchNorm1d(3)), {4, 3}},
      {AnyModule(torch::nn::BatchNorm2d(3)), {4, 3, 2, 2}},
      {AnyModule(torch::nn::BatchNorm3d(3)), {4, 3, 2, 2, 2}},
      {AnyModule(torch::nn::BatchNorm2d(torch::nn::BatchNormOptions(3).momentum(c10::nullopt))), {4, 3, 2, 2}},
      {AnyModule(nn::BatchNorm2d(3)), {4, 3, 2, 2}},
      {AnyModule(nn::BatchNorm2d(torch::nn::BatchNormOptions(3).momentum(c10::nullopt))), {4, 3, 2, 2}},
      {AnyModule(nn::BatchNormReLU2d(3)), {4, 3, 2, 2}},
      {AnyModule(torch::nn::InstanceNorm1d(tracked(torch::nn::InstanceNorm1dOptions(3)))), {4, 3, 5}},
      {AnyModule(torch::nn::InstanceNorm2d(tracked(torch::nn::InstanceNorm2dOptions(3)))), {4, 3, 2, 3}},
      {AnyModule(torch::nn::InstanceNorm3d(tracked(torch::nn::InstanceNorm3dOptions(3)))), {4, 3, 2, 2, 2}}};
}

TEST(FrozenStatistics, KeepTheirBitsWhileTheBatchIsUsed) {
  torch::manual_seed(1);
  for (auto& [layer, sizes] : layers()) {
    const auto module = layer.ptr();
    SCOPED_TRACE(module->name());
    const auto x = torch::randn(sizes) + 2;
    layer.forward(x);
    const auto before = copies(module->buffers());
    const auto names = module->named_buffers().keys();
    at::Tensor y;
    {
      const FrozenStatistics frozen(*module);
      y = layer.forward(x);
      expect_same(module->buffers(), before);
      EXPECT_EQ(module->named_buffers().keys(), names);
    }
    expect_same(module->buffers(), before);
    // By the batch's statistics: as without freezing.
    EXPECT_TRUE(same_bits(layer.forward(x), y));
    EXPECT_TRUE(any_differs(module->buffers(), before)) << "training goes on";
    module->eval();
    EXPECT_FALSE(same_bits(layer.forward(x), y)) << "evaluation uses the running ones";
  }
}

TEST(FrozenStatistics, DoNotTouchEvaluation) {
  torch::manual_seed(2);
  for (auto& [layer, sizes] : layers()) {
    const auto module = layer.ptr();
    const auto x = torch::randn(sizes) + 2;
    layer.forward(x);
    module->eval();
    const auto expected = layer.forward(x);
    const auto before = copies(module->buffers());
    const FrozenStatistics frozen(*module);
    EXPECT_TRUE(same_bits(layer.forward(x), expected)) << module->name();
    expect_same(module->buffers(), before);
  }
}

template <class Kind>
class FrozenNetwork : public testing::Test {
 public:
  BranchProblem<Kind::value> problem;
};
using Kinds = testing::Types<std::true_type, std::false_type>;
struct KindNames {
  template <class Kind>
  static std::string GetName(int) {
    return Kind::value ? "FusedLayers" : "StockLayers";
  }
};
TYPED_TEST_SUITE(FrozenNetwork, Kinds, KindNames);

TYPED_TEST(FrozenNetwork, KeepsItsStatisticsAndTrainsOn) {
  auto& problem = this->problem;
  problem.loss();
  const auto before = copies(problem.model->buffers());
  EXPECT_EQ(before.size(), 18);
  at::Tensor loss;
  {
    const FrozenStatistics frozen(*problem.model);
    loss = problem.loss();
    expect_same(problem.model->buffers(), before);
  }
  // The graph is of use after the scope.
  const auto parameters = problem.model->parameters();
  const auto found = torch::autograd::grad({loss}, parameters);
  const auto again = problem.loss();
  EXPECT_TRUE(same_bits(loss, again));
  expect_same(found, torch::autograd::grad({again}, parameters));
  EXPECT_TRUE(any_differs(problem.model->buffers(), before));
}

TYPED_TEST(FrozenNetwork, ComesBackAfterAnError) {
  auto& problem = this->problem;
  const auto before = copies(problem.model->buffers());
  EXPECT_THROW(
      {
        const FrozenStatistics frozen(*problem.model);
        problem.loss();
        problem.model->forward(torch::randn({2, 7, 4, 4}, torch::kFloat64));
      },
      c10::Error);
  expect_same(problem.model->buffers(), before);
  problem.loss();
  EXPECT_TRUE(any_differs(problem.model->buffers(), before));
  EXPECT_TRUE(problem.model->bn1->running_mean.is_same(problem.model->named_buffers()["bn1.running_mean"]));
}

TYPED_TEST(FrozenNetwork, MayBeFrozenTwice) {
  auto& problem = this->problem;
  const auto before = copies(problem.model->buffers());
  {
    const FrozenStatistics outer(*problem.model);
    {
      const FrozenStatistics inner(*problem.model);
      problem.loss();
    }
    problem.loss();
    expect_same(problem.model->buffers(), before);
  }
  problem.loss();
  EXPECT_TRUE(any_differs(problem.model->buffers(), before));
}

TEST(FrozenStatistics, TakeAHolderAndLayersThatTrackNothing) {
  torch::nn::Sequential network(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 3, 3)),
      torch::nn::BatchNorm2d(torch::nn::BatchNormOptions(3).track_running_stats(false)), torch::nn::InstanceNorm2d(3),
      nn::BatchNorm2d(3));
  const auto before = copies(network->buffers());
  const auto x = torch::randn({2, 2, 6, 6});
  {
    const FrozenStatistics frozen(network);
    network->forward(x);
    expect_same(network->buffers(), before);
  }
  network->forward(x);
  EXPECT_FALSE((*network)[1]->as<torch::nn::BatchNorm2d>()->options.track_running_stats());
  EXPECT_TRUE(any_differs(network->buffers(), before));
}

}  // namespace
}  // namespace sgdph::test::frozen_statistics_test
