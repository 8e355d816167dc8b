// AdaHessian beyond the golden trajectories.

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sgdph::test::adahessian_test {
namespace {

TEST(AdaHessian, FollowsItsFormulaOnADiagonalQuadratic) {
  // With a diagonal Hessian random signs measure it exactly.
  const double lr = 0.05, b1 = 0.8, b2 = 0.9, eps = 1e-2, wd = 0.1, power = 0.7;
  auto x = leaf({0.7, -1.1});
  const auto h = torch::tensor({2.0, 0.5}, torch::kFloat64);
  AdaHessian optimizer(
      Parameters{x}, AdaHessianOptions(lr).betas({b1, b2}).eps(eps).weight_decay(wd).hessian_power(power));
  auto X = x.detach().clone(), m = torch::zeros_like(X), v = torch::zeros_like(X);
  for (int t = 1; t <= 6; ++t) {
    train_step(optimizer, [&] { return 0.5 * (h * x.square()).sum(); });
    m = b1 * m + (1 - b1) * h * X;
    v = b2 * v + (1 - b2) * h.square();
    const auto denominator = (v.sqrt() / std::sqrt(1 - std::pow(b2, t))).pow(power) + eps;
    X = X - lr * (m / (1 - std::pow(b1, t)) / denominator + wd * X);
    EXPECT_TRUE(torch::allclose(x.detach(), X, 1e-12, 1e-14)) << "step " << t;
  }
}

TEST(AdaHessian, AveragesCurvatureOverTheKernelInEveryDimension) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2, 3}, {2, 3, 4}, {2, 3, 4, 5}, {2, 3, 2, 2, 3}}) {
    torch::manual_seed(1);
    const auto h = torch::rand(shape, torch::kFloat64) + 0.5;
    auto w = torch::randn(shape, torch::kFloat64).requires_grad_(true);
    AdaHessian optimizer(Parameters{w});
    train_step(optimizer, [&] { return 0.5 * (h * w.square()).sum(); });
    const auto averaged = h.flatten(std::min<int64_t>(2, w.dim() - 1)).mean(-1);
    const auto expected = shape.size() < 3 ? h : averaged.view({2, 3, 1}).expand({2, 3, h.numel() / 6}).reshape(shape);
    EXPECT_TRUE(torch::allclose(
        state_of<AdaHessianParamState>(optimizer, w).exp_hessian_diag_sq(), 0.001 * expected.square(), 1e-10));
  }
}

TEST(AdaHessian, OneJointProductIsTheFullHessianTimesTheSigns) {
  auto problem = make_problem("BatchNorm");
  const auto parameters = problem.model->parameters();
  AdaHessian optimizer(parameters, AdaHessianOptions(0));
  std::vector<at::Tensor> probes;
  optimizer.set_probe_source([&](const at::Tensor& parameter) {
    probes.push_back(torch::randint(2, parameter.sizes(), torch::kFloat64) * 2 - 1);
    return probes.back();
  });
  train_step(optimizer, [&] { return problem.loss(); });
  std::vector<at::Tensor> flat;
  for (const auto& probe : probes) flat.push_back(probe.flatten());
  const auto product = brute_force_hessian(problem.loss(), parameters).mv(torch::cat(flat)).abs();
  int64_t offset = 0;
  for (const auto& parameter : parameters) {
    const auto expected = product.narrow(0, offset, parameter.numel()).view(parameter.sizes());
    offset += parameter.numel();
    if (parameter.dim() > 2) continue;
    const auto& state = state_of<AdaHessianParamState>(optimizer, parameter);
    EXPECT_TRUE(torch::allclose(state.exp_hessian_diag_sq(), 0.001 * expected.square(), 1e-8, 1e-14));
  }
}

TEST(AdaHessian, DrawsNewSignsEveryStepAndTheSameForTheSameSeed) {
  const auto run = [](uint64_t seed) {
    auto problem = make_problem("ConvBias");
    AdaHessian optimizer(problem.model->parameters(), AdaHessianOptions(0).seed(seed));
    std::vector<at::Tensor> seen;
    for (int step = 0; step < 2; ++step) {
      train_step(optimizer, [&] { return problem.loss(); });
      const auto& state = state_of<AdaHessianParamState>(optimizer, problem.model->parameters()[1]);
      seen.push_back(state.exp_hessian_diag_sq().clone());
    }
    return seen;
  };
  const auto a = run(1), again = run(1), b = run(2);
  EXPECT_TRUE(torch::equal(a[1], again[1]));
  EXPECT_FALSE(torch::allclose(a[0], b[0]));
  EXPECT_FALSE(torch::allclose(a[1] - 0.999 * a[0], a[0])) << "the second step drew the first one's signs";
}

TEST(AdaHessian, AParameterWithAGradientAndWithoutCurvatureIsNamed) {
  auto x = leaf({1}), y = leaf({2});
  AdaHessian optimizer(Parameters{x, y});
  optimizer.backward(x.square().sum());
  optimizer.backward(y.square().sum(), BackwardOptions().measure(false));
  EXPECT_ERROR(optimizer.step(), "parameter 1", "no curvature", "optimizer.backward");
  EXPECT_EQ(x.item<double>(), 1) << "nothing moved";
  EXPECT_EQ(y.item<double>(), 2) << "divided by eps alone it would have jumped by thousands";
}

TEST(AdaHessian, AParameterNoLossDependsOnStaysWhereItIs) {
  auto x = leaf({1}), y = leaf({2});
  AdaHessian optimizer(Parameters{x, y});
  y.mutable_grad() = torch::zeros_like(y);  // as a zero_grad that sets to zero leaves it
  optimizer.backward(x.square().sum());
  optimizer.step();
  EXPECT_NE(x.item<double>(), 1);
  EXPECT_EQ(y.item<double>(), 2);
}

TEST(AdaHessian, ANonFiniteEstimateIsDroppedAndTheOldOneServesOn) {
  // Diagonal, so that random signs measure it exactly: 2 at every step that can be measured.
  auto x = leaf({0.7}), other = leaf({0.3});
  AdaHessian optimizer(Parameters{x, other}, AdaHessianOptions(0.01));
  const auto poisoned = [&] { return x.square().sum() + (x - x.detach()).abs().pow(1.5).sum() + other.square().sum(); };
  train_step(optimizer, poisoned);
  EXPECT_TRUE(optimizer.last_step().applied);
  EXPECT_EQ(optimizer.last_step().rejected_estimates, 1);
  EXPECT_EQ(x.item<double>(), 0.7) << "nothing to divide by yet";
  EXPECT_NE(other.item<double>(), 0.3);
  train_step(optimizer, [&] { return x.square().sum() + other.square().sum(); });
  for (int t = 0; t < 3; ++t) {
    const auto before = x.item<double>();
    train_step(optimizer, poisoned);
    EXPECT_LT(x.item<double>(), before);
    const auto& state = state_of<AdaHessianParamState>(optimizer, x);
    const auto corrected = state.exp_hessian_diag_sq() / (1 - std::pow(0.999, state.step()));
    EXPECT_NEAR(corrected.item<double>(), 4, 1e-9) << "the average stays where it is";
  }
}

TEST(AdaHessian, ThatParametersWithoutAFiniteCurvatureStandStillIsSaidOnce) {
  // The norm of an empty row: a gradient of zero, and no second derivative.
  auto x = leaf({0.7, 0.2}), other = leaf({0.3});
  AdaHessian optimizer(Parameters{x, other}, AdaHessianOptions(0.01));
  const auto rows = torch::tensor({{1., 1.}, {0., 0.}}, torch::kFloat64);
  testing::internal::CaptureStderr();
  for (int t = 0; t < 10; ++t) {
    train_step(optimizer, [&] { return (rows * x).norm(2, {1}).sum() + other.square().sum(); });
  }
  const auto said = testing::internal::GetCapturedStderr();
  const std::string notice = "1 of the parameters do not move";
  const auto first = said.find(notice);
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find(notice, first + 1), std::string::npos) << said;
}

TEST(AdaHessian, AStepWithoutCurvatureIsRefused) {
  auto x = leaf({1});
  AdaHessian optimizer(Parameters{x});
  x.square().sum().backward();
  EXPECT_ERROR(optimizer.step(), "no curvature", "optimizer.backward(loss)");
  EXPECT_EQ(x.item<double>(), 1);
  optimizer.update_curvature(x.square().sum());
  EXPECT_NO_THROW(optimizer.step());
  EXPECT_NE(x.item<double>(), 1);
}

}  // namespace
}  // namespace sgdph::test::adahessian_test
