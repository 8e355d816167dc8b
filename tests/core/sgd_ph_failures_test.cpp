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

TEST_F(Quadratic, ANonFiniteCurvatureChangesNothing) {
  // |x|^1.5 has a finite gradient at 0 and an infinite second derivative.
  auto z = leaf({0.0, 1.0});
  for (const bool guard : {true, false}) {
    SGDPH optimizer(Parameters{w, z}, SGDPHOptions(0.1).rule(Rule::Paper).shift_guard(guard));
    const auto W = w.detach().clone();
    train_step(optimizer, [&] { return w.square().sum() + z.abs().pow(1.5).sum(); });
    EXPECT_FALSE(optimizer.last_step().applied);
    EXPECT_GE(optimizer.last_step().non_finite, 1);
    EXPECT_TRUE(torch::equal(w, W));
    EXPECT_TRUE(optimizer.state().empty());
  }
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
  EXPECT_ERROR(optimizer.backward(loss()), "all-reduce", "[2]");
  EXPECT_FALSE(x.grad().defined()) << "nothing changed";
  optimizer.set_all_reduce(std::function<at::Tensor(const at::Tensor&)>());
  EXPECT_NO_THROW(optimizer.backward(loss())) << "an empty function means none";
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
