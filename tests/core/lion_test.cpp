#include <sgdph/lion.h>

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sgdph::test::lion {
namespace {

double sign(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}

void step_with(Lion& optimizer, at::Tensor& parameter, const std::vector<double>& gradient) {
  parameter.mutable_grad() = torch::tensor(gradient, torch::kFloat64);
  optimizer.step();
}

TEST(Lion, FollowsTheFormulaElementByElement) {
  auto parameter = leaf({1, -2, 0.5});
  Lion optimizer(Parameters{parameter}, LionOptions(0.1).betas({0.8, 0.6}).weight_decay(0.3));
  std::vector<double> w{1, -2, 0.5}, m{0, 0, 0};
  const std::vector<std::vector<double>> gradients{{1, -3, 0}, {-2, 0.5, 0}, {0.25, 4, 1}, {-0.1, -0.1, 0}};
  for (const auto& g : gradients) {
    step_with(optimizer, parameter, g);
    for (size_t i = 0; i < w.size(); ++i) {
      w[i] -= 0.1 * (sign(0.8 * m[i] + 0.2 * g[i]) + 0.3 * w[i]);
      m[i] = 0.6 * m[i] + 0.4 * g[i];
      EXPECT_NEAR(parameter[static_cast<int64_t>(i)].item<double>(), w[i], 1e-15) << i;
    }
  }
}

TEST(Lion, EveryElementMovesByTheLearningRateWhateverTheGradientsSize) {
  auto parameter = leaf({0, 0, 0});
  Lion optimizer(Parameters{parameter}, LionOptions(0.01));
  step_with(optimizer, parameter, {1e-12, -1e12, 3});
  EXPECT_TRUE(torch::equal(parameter.detach(), torch::tensor({-0.01, 0.01, -0.01}, torch::kFloat64)));
}

TEST(Lion, TheDirectionForgetsFasterThanTheMomentum) {
  // After many steps of gradient 1 the momentum is near 1; one gradient of -20 turns the direction, not the momentum.
  auto parameter = leaf({0});
  Lion optimizer(Parameters{parameter}, LionOptions(1));
  for (int step = 0; step < 2000; ++step) step_with(optimizer, parameter, {1});
  EXPECT_NEAR(parameter.item<double>(), -2000, 1e-9);
  step_with(optimizer, parameter, {-20});
  EXPECT_NEAR(parameter.item<double>(), -1999, 1e-9);
  EXPECT_GT(state_of<LionParamState>(optimizer, parameter).exp_avg().item<double>(), 0);
}

TEST(Lion, FrozenAndUnusedParametersStay) {
  auto used = leaf({1}), unused = leaf({2}), frozen = leaf({3});
  frozen.set_requires_grad(false);
  Lion optimizer(Parameters{used, unused, frozen}, LionOptions(0.5).weight_decay(1));
  step_with(optimizer, used, {1});
  EXPECT_EQ(used.item<double>(), 0);
  EXPECT_EQ(unused.item<double>(), 2);
  EXPECT_EQ(frozen.item<double>(), 3);
}

TEST(Lion, FitsTheSharedProblems) {
  for (const auto& kind : kProblemKinds) {
    auto problem = make_problem(kind);
    Lion optimizer(problem.model->parameters(), LionOptions(0.01));
    const double before = problem.loss().item<double>();
    for (int step = 0; step < 300; ++step) train_step(optimizer, [&] { return problem.loss(); });
    EXPECT_LT(problem.loss().item<double>(), 0.2 * before) << kind << " from " << before;
  }
}

}  // namespace
}  // namespace sgdph::test::lion
