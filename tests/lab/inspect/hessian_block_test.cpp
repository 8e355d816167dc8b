#include "inspect/hessian_block.h"

#include "base/interrupt.h"
#include "support/networks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <memory>

namespace sgdph::lab::inspect::hessian_block_test {
namespace {

using test::Problem;

/// Second differences of the loss, every pair of channels on its own: no derivative of anybody's.
at::Tensor finite_difference_hessian(Problem& problem, const at::Tensor& parameter) {
  constexpr double kStep = 2e-3;
  const torch::NoGradGuard no_grad;
  const auto start = parameter.clone();
  const auto loss_at = [&](int64_t i, double step_i, int64_t j, double step_j) {
    parameter.copy_(start);
    parameter[i] += step_i;
    parameter[j] += step_j;
    return problem.loss().item<double>();
  };
  const auto channels = parameter.numel();
  auto hessian = torch::zeros({channels, channels}, torch::kFloat64);
  for (int64_t i = 0; i < channels; ++i) {
    for (int64_t j = 0; j < channels; ++j) {
      const auto difference = loss_at(i, kStep, j, kStep) - loss_at(i, kStep, j, -kStep) -
                              loss_at(i, -kStep, j, kStep) + loss_at(i, -kStep, j, -kStep);
      hessian[i][j] = difference / (4 * kStep * kStep);
    }
  }
  parameter.copy_(start);
  return hessian;
}

HessianBlock measure(Problem& problem, const Block& block, int64_t max_channels = 0) {
  return measure_hessian([&] { return problem.loss(); }, problem.model->parameters(), block, max_channels, [] {});
}

class Hessian : public testing::TestWithParam<std::string> {
 protected:
  Problem problem = test::make_problem(GetParam());
};

TEST_P(Hessian, AgreesWithFiniteDifferencesOfTheLoss) {
  const auto blocks = blocks_of(*problem.model, true);
  ASSERT_GE(blocks.size(), 2U);
  for (const auto& block : blocks) {
    const auto expected = finite_difference_hessian(problem, block.parameter);
    const auto found = measure(problem, block);
    ASSERT_TRUE(found.complete());
    const auto scale = std::max(expected.abs().max().item<double>(), 1e-3);
    EXPECT_LT((found.rows - expected).abs().max().item<double>(), 1e-4 * scale) << block.name << "\n"
                                                                                << found.rows << expected;
    EXPECT_LT(found.asymmetry(), 1e-9) << block.name;
    EXPECT_TRUE(torch::allclose(found.diagonal(), found.rows.diagonal(), 0, 0)) << block.name;
    EXPECT_TRUE(torch::allclose(found.row_sum(), found.rows.sum(1), 0, 0)) << block.name;
    EXPECT_TRUE(torch::allclose(found.filled(), found.square(), 0, 0)) << block.name;
  }
}

TEST_P(Hessian, OfSomeChannelsHasTheirRows) {
  for (const auto& block : blocks_of(*problem.model, false)) {
    const auto whole = measure(problem, block);
    const auto part = measure(problem, block, 2);
    EXPECT_EQ(part.channels, (std::vector<int64_t>{0, block.channels() - 1}));
    EXPECT_EQ(products_of(block, 2), 4);
    EXPECT_FALSE(part.complete());
    const auto index = torch::tensor(part.channels);
    EXPECT_TRUE(torch::allclose(part.rows, whole.rows.index_select(0, index)));
    EXPECT_TRUE(torch::allclose(part.diagonal(), whole.diagonal().index_select(0, index)));
    EXPECT_TRUE(torch::allclose(part.row_sum(), whole.row_sum().index_select(0, index)));
    const auto filled = part.filled();
    EXPECT_TRUE(torch::allclose(filled.index_select(0, index), part.rows, 1e-9, 1e-12));
    EXPECT_TRUE(torch::equal(filled, filled.t()));
  }
}

TEST_P(Hessian, HasTheRowSumsThatTheOptimizerMeasures) {
  for (const auto& block : blocks_of(*problem.model, false)) {
    const auto found = measure(problem, block);
    EXPECT_FALSE(found.shift_invariant) << block.name;
    ASSERT_TRUE(found.optimizer_row_sum.defined()) << block.name;
    EXPECT_TRUE(torch::allclose(found.optimizer_row_sum, found.row_sum(), 1e-9, 1e-12)) << block.name;
  }
}

TEST_P(Hessian, LeavesWeightsAndGradientsAlone) {
  const auto block = blocks_of(*problem.model, false).front();
  const auto before = block.parameter.detach().clone();
  measure(problem, block);
  EXPECT_TRUE(torch::equal(block.parameter, before));
  for (const auto& parameter : problem.model->parameters()) EXPECT_FALSE(parameter.grad().defined());
}

INSTANTIATE_TEST_SUITE_P(Kinds, Hessian, testing::ValuesIn(test::kProblemKinds), [](const auto& info) {
  return info.param;
});

TEST(HessianBlock, OfABiasBeforeSoftmaxIsShiftInvariant) {
  auto problem = test::make_problem("BatchNorm");
  const auto blocks = blocks_of(*problem.model, true);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto found = measure(problem, blocks[i]);
    EXPECT_EQ(found.shift_invariant, i + 1 == blocks.size()) << blocks[i].name;
  }
}

TEST(HessianBlock, OfOurLayersIsThatOfLibTorchs) {
  torch::manual_seed(3);
  test::NetA stock;
  test::FusedNetA fused;
  {
    const torch::NoGradGuard no_grad;
    const auto from = stock->parameters();
    const auto to = fused->parameters();
    for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
  }
  const auto images = torch::randn({6, 1, 6, 6}, torch::kFloat64);
  const auto labels = torch::randint(5, {6}, torch::kLong);
  const auto hessian = [&](auto& model, size_t index) {
    return measure_hessian(
        [&] { return torch::nn::functional::cross_entropy(model->forward(images), labels); }, model->parameters(),
        blocks_of(*model, false)[index], 0, [] {});
  };
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(torch::allclose(hessian(fused, i).rows, hessian(stock, i).rows, 1e-8, 1e-11)) << i;
  }
}

TEST(HessianBlock, KeepsTheRowsThereAreWhenInterrupted) {
  auto problem = test::make_problem("BatchNorm");
  const auto block = blocks_of(*problem.model, false).front();
  auto guard = std::make_unique<InterruptGuard>();
  int products = 0;
  const auto found = measure_hessian(
      [&] { return problem.loss(); }, problem.model->parameters(), block, 0,
      [&] {
        if (++products == 5) std::raise(SIGINT);
      });
  EXPECT_EQ(found.channels, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(found.rows.size(0), 3);
  guard = std::make_unique<InterruptGuard>();  // lowers the flag, for the tests after this one
  EXPECT_FALSE(interrupted());
}

TEST(DeviationOver, IsThatOfTheEstimatesOfTheLosses) {
  // Losses a sum(w^2) / 2 have the Hessian a I: estimates are a, whatever the signs.
  auto w = torch::tensor({1., 2., 3.}, torch::kFloat64).requires_grad_(true);
  std::vector<LossFunction> losses;
  for (const double a : {1., 2., 6.}) losses.emplace_back([&w, a] { return 0.5 * a * w.square().sum(); });
  const Block block{"w", "gain", w};
  EXPECT_NEAR(deviation_over(losses, block, {0, 1, 2}, 1), std::sqrt(3 * 7.), 1e-12) << "variance 7 in each channel";
  EXPECT_NEAR(deviation_over(losses, block, {1}, 1), std::sqrt(7.), 1e-12);
  EXPECT_EQ(deviation_over({losses[1], losses[1]}, block, {0, 1, 2}, 1), 0);
  EXPECT_TRUE(std::isnan(deviation_over({losses[0]}, block, {0}, 1)));
  // Signs are random, but the same for all: a coupling that all losses share makes no difference between them.
  std::vector<LossFunction> coupled;
  for (const double a : {1., 2., 6.}) {
    coupled.emplace_back([&w, a] { return 0.5 * a * w.square().sum() + 10 * w[0] * w[1] * 2; });
  }
  EXPECT_NEAR(deviation_over(coupled, block, {0, 1, 2}, 1), std::sqrt(3 * 7.), 1e-12);
}

}  // namespace
}  // namespace sgdph::lab::inspect::hessian_block_test
