// What SGD-PH does when values are not finite, or what it is given is wrong: nothing, and it says so.

#include "support/quadratic.h"

#include <cmath>
#include <limits>

namespace sgdph::test::sgd_ph_failures_test {
namespace {

const double kNan = std::nan("");

TEST_F(Quadratic, ANonFiniteGradientChangesNothing) {
  SGDPH optimizer(parameters, SGDPHOptions(0.1).shift_guard(false));
  train_step(optimizer, loss);
  std::stringstream before;
  torch::save(optimizer, before);
  const auto X = x.detach().clone(), W = w.detach().clone();
  for (const double poison : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    train_step(optimizer, [&] { return loss() + (w * poison).sum(); });
    EXPECT_FALSE(optimizer.last_step().applied);
    EXPECT_GE(optimizer.last_step().non_finite, 2);
    EXPECT_EQ(optimizer.last_step().step, 1);
    EXPECT_TRUE(torch::equal(x, X));
    EXPECT_TRUE(torch::equal(w, W));
    std::stringstream after;
    torch::save(optimizer, after);
    EXPECT_EQ(after.str(), before.str()) << "the state was touched";
  }
  train_step(optimizer, loss);
  EXPECT_TRUE(optimizer.last_step().applied);
  EXPECT_EQ(optimizer.last_step().step, 2);
}

TEST_F(Quadratic, ANonFiniteEstimateIsDroppedAndTheStepGoesOn) {
  // |x|^1.5 has a finite gradient at 0 and an infinite second derivative.
  for (const bool guard : {true, false}) {
    auto z = leaf({0.0, 1.0});
    SGDPH optimizer(Parameters{w, z}, SGDPHOptions(0.1).rule(Rule::Paper).shift_guard(guard));
    const auto W = w.detach().clone(), Z = z.detach().clone();
    train_step(optimizer, [&] { return w.square().sum() + z.abs().pow(1.5).sum(); });
    EXPECT_TRUE(optimizer.last_step().applied);
    EXPECT_EQ(optimizer.last_step().rejected_estimates, 1);
    EXPECT_GE(optimizer.last_step().non_finite, 1);
    EXPECT_TRUE(optimizer.last_step().blocks_refreshed.empty());
    EXPECT_FALSE(torch::equal(w, W));
    EXPECT_EQ(optimizer.param_state(z)->refreshes(), 0);
    expect(z, Z - 0.1 * 0.9 * torch::tensor({0.0, 1.5}, torch::kFloat64), "first-order, without curvature");
  }
}

TEST_F(Quadratic, ABlockWithoutASecondDerivativeDoesNotStallTheOthers) {
  // The norm of rows that are all zero: its gradient is masked there, its second derivative is not a number.
  for (const auto refresh : {Refresh::Cyclic, Refresh::All}) {
    torch::manual_seed(3);
    auto gain = leaf({1, 1, 1}), shift = leaf({0.1, 0.2, 0.3}), last = leaf({0.1});
    auto inputs = torch::randn({4, 3}, torch::kFloat64);
    inputs[3].zero_();
    const auto cost = [&] {
      return (inputs * gain).norm(2, {1}).mean() + (shift - 1).square().sum() + last.square().sum();
    };
    SGDPH optimizer(Parameters{gain, shift, last}, SGDPHOptions(0.05).refresh(refresh).shift_guard(false));
    const auto before = cost().item<double>();
    testing::internal::CaptureStderr();
    int applied = 0;
    for (int t = 0; t < 60; ++t) {
      train_step(optimizer, cost);
      applied += optimizer.last_step().applied ? 1 : 0;
    }
    const auto notice = testing::internal::GetCapturedStderr();
    EXPECT_EQ(applied, 60);
    EXPECT_LT(cost().item<double>(), before);
    EXPECT_GE(optimizer.param_state(shift)->refreshes(), 15) << "its turns came";
    EXPECT_EQ(optimizer.param_state(gain)->refreshes(), 0);
    const auto first = notice.find("not finite 3 times in a row");
    ASSERT_NE(first, std::string::npos) << notice;
    EXPECT_NE(notice.find("group 0 parameter 0"), std::string::npos) << notice;
    EXPECT_EQ(notice.find("not finite", first + 5), std::string::npos) << "said twice: " << notice;
    EXPECT_NE(optimizer.partition().entries[0].reason.find("curvature not finite"), std::string::npos);
    EXPECT_EQ(optimizer.partition().entries[1].reason.find("curvature not finite"), std::string::npos);
  }
}

TEST_F(Quadratic, ABlockKeepsItsCurvatureWhileEstimatesAreNotFinite) {
  SGDPH optimizer(Parameters{x, y}, SGDPHOptions(0.1).rule(Rule::Paper).shift_guard(false));
  train_step(optimizer, loss);
  const auto known = optimizer.param_state(x)->curvature().clone();
  train_step(optimizer, [&] { return loss() + (x - x.detach()).abs().pow(1.5).sum(); });
  EXPECT_TRUE(optimizer.last_step().applied);
  EXPECT_EQ(optimizer.last_step().rejected_estimates, 1);
  EXPECT_TRUE(torch::equal(optimizer.param_state(x)->curvature(), known));
  EXPECT_EQ(optimizer.param_state(x)->refreshes(), 1);
  EXPECT_EQ(optimizer.param_state(y)->refreshes(), 2);
}

TEST_F(Quadratic, ANonFiniteMicroBatchEndsTheWindowAndTheTurnComesAgain) {
  auto second = leaf({0.3, 0.4});
  SGDPH optimizer(Parameters{x, second, y}, SGDPHOptions(0.1).shift_guard(false));
  const auto both = [&] { return loss() + second.square().sum(); };
  optimizer.backward(both());
  optimizer.backward(both() * kNan);
  optimizer.step();
  EXPECT_FALSE(optimizer.last_step().applied);
  EXPECT_TRUE(optimizer.state().empty());
  train_step(optimizer, both);
  ASSERT_EQ(optimizer.last_step().blocks_refreshed.size(), 1);
  EXPECT_TRUE(optimizer.last_step().blocks_refreshed[0].parameter.is_same(x)) << "the turn did not pass";
  expect(optimizer.last_step().blocks_refreshed[0].estimate, a.sum(1), "of the new window alone");
}

TEST_F(Quadratic, TwentyStepsOfPlainBackwardGiveOneNotice) {
  SGDPH optimizer(parameters, SGDPHOptions(0.01).shift_guard(false));
  const auto plain_steps = [&](int steps) {
    testing::internal::CaptureStderr();
    for (int t = 0; t < steps; ++t) {
      optimizer.zero_grad();
      loss().backward();
      optimizer.step();
    }
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(plain_steps(19), "");
  const auto notice = plain_steps(1);
  EXPECT_NE(notice.find("20 steps"), std::string::npos) << notice;
  EXPECT_NE(notice.find("optimizer.backward(loss)"), std::string::npos) << notice;
  EXPECT_EQ(plain_steps(50), "") << "said once";
}

TEST_F(Quadratic, StepsWithAMeasurementNowAndThenGiveNoNotice) {
  SGDPH optimizer(parameters, SGDPHOptions(0.01).shift_guard(false));
  testing::internal::CaptureStderr();
  for (int t = 0; t < 100; ++t) {
    optimizer.zero_grad();
    if (t % 19 == 0) optimizer.update_curvature(loss());
    loss().backward();
    optimizer.step();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Quadratic, ALossThatWentWrongCanBeReplacedBeforeTheStep) {
  SGDPH optimizer(parameters, SGDPHOptions(0.1).rule(Rule::Paper));
  optimizer.backward(loss() * kNan);
  optimizer.zero_grad();
  optimizer.backward(loss());
  optimizer.step();
  EXPECT_TRUE(optimizer.last_step().applied);
  expect(optimizer.last_step().blocks_refreshed.at(0).estimate, a.sum(1), "measured anew");
}

TEST_F(Quadratic, LargeFiniteGradientsAreNotTakenForNonFinite) {
  auto big = torch::full({4}, 1.0f).requires_grad_(true);
  SGDPH optimizer(Parameters{big}, SGDPHOptions(0.0));
  train_step(optimizer, [&] { return (big * 3e38f).sum(); });
  EXPECT_TRUE(optimizer.last_step().applied) << "the sum of the gradient overflows, no value does";
}

TEST_F(Quadratic, AFilterThatFailsChangesNothing) {
  for (const auto rule : {Rule::Reference, Rule::Paper}) {
    SGDPH optimizer(Parameters{x, y, leaf({1, 1})}, SGDPHOptions(0.1).rule(rule).shift_guard(false));
    train_step(optimizer, loss);
    const auto X = x.detach().clone();
    std::stringstream before;
    torch::save(optimizer, before);
    const auto expect_unchanged = [&] {
      std::stringstream after;
      torch::save(optimizer, after);
      EXPECT_EQ(before.str(), after.str());
      EXPECT_TRUE(torch::equal(x, X));
    };
    // The first block passes, the second fails.
    int calls = 0;
    optimizer.set_curvature_filter(
        [&](const at::Tensor& curvature) { return ++calls == 2 ? curvature.sum() : curvature; });
    EXPECT_ERROR(train_step(optimizer, loss), "filter", "[2]");
    expect_unchanged();
    calls = 0;
    optimizer.set_curvature_filter(
        [&](const at::Tensor& curvature) { return ++calls == 2 ? curvature * kNan : curvature; });
    train_step(optimizer, loss);
    EXPECT_FALSE(optimizer.last_step().applied);
    EXPECT_EQ(optimizer.last_step().non_finite, 2);
    expect_unchanged();
    optimizer.set_curvature_filter(nullptr);
    train_step(optimizer, loss);
    EXPECT_TRUE(optimizer.last_step().applied);
  }
}

TEST_F(Quadratic, AnAllReduceThatChangesTheShapeIsRefused) {
  SGDPH optimizer(Parameters{x}, SGDPHOptions(0.1).rule(Rule::Paper));
  optimizer.set_all_reduce([](const at::Tensor& tensor) { return tensor.sum(); });
  const auto before = x.detach().clone();
  optimizer.backward(loss());
  EXPECT_ERROR(optimizer.step(), "all-reduce", "[");
  EXPECT_TRUE(torch::equal(x, before) && optimizer.state().empty()) << "nothing changed";
  optimizer.set_all_reduce(std::function<at::Tensor(const at::Tensor&)>());
  EXPECT_NO_THROW(optimizer.step()) << "an empty function means none";
}

TEST_F(Quadratic, AProbeOfTheWrongShapeIsRefused) {
  SGDPH optimizer(Parameters{x}, SGDPHOptions(0.1).rule(Rule::Paper));
  optimizer.set_probe_source([](const at::Tensor&) { return torch::ones({3}, torch::kFloat64); });
  EXPECT_ERROR(optimizer.backward(loss()), "probe source", "[2]");
  EXPECT_FALSE(x.grad().defined()) << "nothing changed";
}

TEST_F(Quadratic, LossesThatCannotBeDifferentiatedAreRefusedAndChangeNothing) {
  SGDPH optimizer(parameters);
  AdaHessian other(parameters);
  for (CurvatureOptimizer* measuring :
       {static_cast<CurvatureOptimizer*>(&optimizer), static_cast<CurvatureOptimizer*>(&other)}) {
    EXPECT_ERROR(measuring->backward(x * 2), "scalar", "[2]");
    EXPECT_ERROR(measuring->backward(loss().detach()), "no graph");
    EXPECT_ERROR(measuring->backward({}), "undefined");
    EXPECT_ERROR(measuring->update_curvature(loss().detach()), "update_curvature", "no graph");
  }
  EXPECT_FALSE(x.grad().defined());
  EXPECT_TRUE(optimizer.state().empty());
}

}  // namespace
}  // namespace sgdph::test::sgd_ph_failures_test
