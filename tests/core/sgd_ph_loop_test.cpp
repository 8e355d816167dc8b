// SGD-PH in a training loop: gradients, graphs, closures, accumulation, parameters that are not used.

#include "support/networks.h"
#include "support/quadratic.h"

namespace sgdph::test::sgd_ph_loop_test {
namespace {

TEST_F(Quadratic, AccumulationAddsGradientsAndCurvature) {
  SGDPH optimizer(parameters, SGDPHOptions(0.1).rule(Rule::Paper).shift_guard(false));
  optimizer.zero_grad();
  EXPECT_TRUE(optimizer.curvature_due());
  optimizer.backward(loss());
  EXPECT_TRUE(optimizer.curvature_due()) << "every call of the window measures";
  optimizer.backward(3 * loss());
  expect(x.grad(), 4 * a.mv(x.detach()), "gradients add up");
  optimizer.step();
  expect(optimizer.last_step().blocks_refreshed[0].estimate, 4 * a.sum(1), "curvature adds up");
  EXPECT_TRUE(optimizer.curvature_due());
}

TEST_F(Quadratic, GradientsAreThoseOfLibTorch) {
  SGDPH optimizer(parameters);
  for (const int round : {1, 2}) {
    optimizer.backward(loss());
    expect(w.grad(), round * 2 * w.detach(), "matrix");
    expect(x.grad(), round * a.mv(x.detach()), "block");
  }
}

TEST_F(Quadratic, EveryLeafGetsItsGradientUnlessInputsAreNamed) {
  SGDPH optimizer(Parameters{x});
  optimizer.backward(loss(), BackwardOptions().inputs({x}));
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(w.grad().defined());
  EXPECT_FALSE(y.grad().defined());
  optimizer.backward(loss());
  expect(w.grad(), 2 * w.detach(), "another leaf");
  expect(y.grad(), y.detach(), "another leaf");
}

TEST_F(Quadratic, TheGraphIsFreedUnlessRetained) {
  SGDPH optimizer(parameters);
  const auto value = loss().exp();
  optimizer.backward(value, /*retain_graph=*/true);
  optimizer.backward(value);
  EXPECT_ERROR(value.backward(), "second time");
  SGDPH fresh(parameters);
  const auto measured = loss().exp();
  fresh.backward(measured);
  EXPECT_ERROR(measured.backward(), "second time");
}

TEST_F(Quadratic, TheGraphIsFreedOnEveryStepAlike) {
  // Two optimizers on separate branches of one loss. As in LibTorch, a pass to the inputs frees what it has run,
  // whether or not curvature was due, and leaves the other branch; it was freed as well once, and this an error.
  SGDPH first(Parameters{x}, SGDPHOptions(0.1).rule(Rule::Paper).refresh_every(2));
  SGDPH second(Parameters{y}, SGDPHOptions(0.1).rule(Rule::Paper));
  for (int t = 0; t < 4; ++t) {
    const auto value = x.exp().square().sum() + y.exp().square().sum();
    first.backward(value, BackwardOptions().retain_graph(t >= 2).inputs({x}));
    if (t < 2) EXPECT_ERROR(torch::autograd::grad({value}, {x}, {}, /*retain_graph=*/true), "second time");
    EXPECT_NO_THROW(second.backward(value, BackwardOptions().inputs({y})));
    EXPECT_ERROR(torch::autograd::grad({value}, {y}), "second time");
    first.step();
  }
}

TEST_F(Quadratic, RetainingTheGraphWorksWithSeveralProductsAndTheGuard) {
  SGDPH optimizer(parameters, SGDPHOptions(0.1).rule(Rule::Paper));
  const auto value = loss().exp();
  optimizer.backward(value, /*retain_graph=*/true);
  EXPECT_NO_THROW(value.backward());
}

TEST_F(Quadratic, UpdateCurvatureLeavesTheLossToBackward) {
  SGDPH optimizer(parameters, SGDPHOptions(0).rule(Rule::Paper));
  for (int t = 0; t < 2; ++t) {
    optimizer.zero_grad();
    const auto value = loss().exp();
    optimizer.update_curvature(value);
    value.backward();
    optimizer.step();
    EXPECT_EQ(optimizer.last_step().blocks_refreshed.size(), 2);
  }
}

TEST_F(Quadratic, AClosureWorksAsInLibTorch) {
  auto other = leaf({0.7, -0.4});
  SGDPH direct(Parameters{x}, SGDPHOptions(0.1).rule(Rule::Paper));
  SGDPH closed(Parameters{other}, SGDPHOptions(0.1).rule(Rule::Paper));
  for (int t = 0; t < 3; ++t) {
    train_step(direct, [&] { return 0.5 * x.dot(a.mv(x)); });
    torch::NoGradGuard no_grad;  // as LibTorch, the closure runs with gradients enabled
    const auto returned = closed.step([&] {
      closed.zero_grad();
      const auto value = 0.5 * other.dot(a.mv(other));
      closed.backward(value);
      return value;
    });
    EXPECT_TRUE(returned.defined());
    EXPECT_TRUE(torch::equal(x, other));
  }
}

TEST_F(Quadratic, PlainBackwardWorksAfterUpdateCurvature) {
  auto other = leaf({0.7, -0.4});
  SGDPH one(Parameters{x}, SGDPHOptions(0.1).rule(Rule::Paper));
  SGDPH two(Parameters{other}, SGDPHOptions(0.1).rule(Rule::Paper));
  for (int t = 0; t < 3; ++t) {
    train_step(one, [&] { return 0.5 * x.dot(a.mv(x)); });
    two.zero_grad();
    two.update_curvature(0.5 * other.dot(a.mv(other)));
    (0.5 * other.dot(a.mv(other))).backward();
    two.step();
    EXPECT_TRUE(torch::equal(x, other));
  }
}

TEST_F(Quadratic, ATurnIsNotLostWhenAStepMeasuresNothing) {
  auto second = leaf({0.3, 0.4});
  SGDPH optimizer(Parameters{x, second, y}, SGDPHOptions(0.1).shift_guard(false));
  const auto both = [&] { return loss() + second.square().sum(); };
  train_step(optimizer, both);
  optimizer.zero_grad();
  both().backward();  // not through the optimizer
  optimizer.step();
  EXPECT_TRUE(optimizer.last_step().blocks_refreshed.empty());
  train_step(optimizer, both);
  EXPECT_TRUE(optimizer.last_step().blocks_refreshed.at(0).parameter.is_same(second));
}

TEST_F(Quadratic, UnusedAndFrozenParametersAreLeftAlone) {
  auto unused = leaf({5, 6});
  auto frozen = torch::tensor({7.0, 8.0}, torch::kFloat64);
  for (const auto rule : {Rule::Reference, Rule::Paper}) {
    SGDPH optimizer(Parameters{w, unused, frozen, x, y}, SGDPHOptions(0.1).rule(rule).weight_decay(0.1));
    std::set<const at::TensorImpl*> refreshed;
    for (int t = 0; t < 6; ++t) {
      train_step(optimizer, loss);
      for (const auto& block : optimizer.last_step().blocks_refreshed) {
        refreshed.insert(block.parameter.unsafeGetTensorImpl());
      }
    }
    EXPECT_EQ(refreshed.count(x.unsafeGetTensorImpl()), 1) << rule;
    EXPECT_EQ(refreshed.count(unused.unsafeGetTensorImpl()), 0);
    expect(unused, torch::tensor({5.0, 6.0}, torch::kFloat64), "unused");
    expect(frozen, torch::tensor({7.0, 8.0}, torch::kFloat64), "frozen");
  }
}

TEST_F(Quadratic, AParameterFrozenOnTheWayStopsAtOnce) {
  SGDPH optimizer(parameters, SGDPHOptions(0.1).weight_decay(0.1));
  AdaBelief other(parameters, AdaBeliefOptions(0.1).weight_decay(0.1));
  for (auto* either :
       {static_cast<torch::optim::Optimizer*>(&optimizer), static_cast<torch::optim::Optimizer*>(&other)}) {
    w.requires_grad_(true);
    x.requires_grad_(true);
    train_step(*either, loss);
    w.requires_grad_(false);
    x.requires_grad_(false);
    const auto W = w.detach().clone(), X = x.detach().clone();
    train_step(*either, loss);  // zero_grad has left gradients of zero behind, and momentum is under way
    EXPECT_TRUE(torch::equal(w, W));
    EXPECT_TRUE(torch::equal(x, X));
  }
}

TEST_F(Quadratic, RefreshEveryBuildsAGraphOnDueStepsOnly) {
  SGDPH optimizer(parameters, SGDPHOptions(0.1).rule(Rule::Paper).refresh_every(3).shift_guard(false));
  for (int t = 0; t < 9; ++t) {
    EXPECT_EQ(optimizer.curvature_due(), t % 3 == 0);
    train_step(optimizer, loss);
    EXPECT_EQ(optimizer.last_step().products, t % 3 == 0 ? 2 : 0);
  }
}

TEST(SGDPH, IsBuiltFromAModuleOrItsHolder) {
  NetA model;
  EXPECT_EQ(SGDPH(*model).partition().blocks(), 4);
  EXPECT_EQ(SGDPH(model, SGDPHOptions(0.1)).partition().blocks(), 4);
  const SGDPH constant(model);
  EXPECT_EQ(constant.partition().entries.size(), 8);
}

}  // namespace
}  // namespace sgdph::test::sgd_ph_loop_test
