// The steps of SGD-PH in closed form.

#include "support/networks.h"
#include "support/quadratic.h"

#include <cmath>

namespace sgdph::test::sgd_ph_test {
namespace {

TEST_F(Quadratic, ReferenceFollowsTheAuthorsFormula) {
  const double lr = 0.1, tau = 0.01, mu = 0.8, alpha = 0.6, wd = 0.3, eps = 0.05;
  SGDPH optimizer(
      parameters,
      SGDPHOptions(lr).lr_so(tau).momentum(mu).hessian_momentum(alpha).weight_decay(wd).eps(eps).shift_guard(false));
  auto X = x.detach().clone(), W = w.detach().clone(), Y = y.detach().clone();
  auto bx = torch::zeros_like(X), bw = torch::zeros_like(W), by = torch::zeros_like(Y), diag = torch::zeros_like(X);
  for (int t = 1; t <= 7; ++t) {
    // x has the turn at odd steps, y (first-order, the last) lets the even ones pass: M = 2.
    if (t % 2 == 1) diag = alpha * diag + (1 - alpha) * h;
    const double c = 1 - std::pow(alpha, t / 2 + 1);
    bx = mu * bx + a.mv(X);
    X = X - lr * (tau * c * bx / (diag + eps) + wd * X);
    bw = mu * bw + 2 * W + wd * W;
    W = W - lr * bw;
    by = mu * by + Y + wd * Y;
    Y = Y - lr * by;
    train_step(optimizer, loss);
    expect(x, X, "block");
    expect(w, W, "matrix");
    expect(y, Y, "last");
    EXPECT_EQ(optimizer.last_step().blocks_refreshed.size(), t % 2);
    EXPECT_EQ(optimizer.last_step().products, t % 2);
    EXPECT_EQ(optimizer.last_step().step, t);
  }
}

TEST_F(Quadratic, PaperFollowsAlgorithmOne) {
  const double lr = 0.1, tau = 0.01, b = 0.8, alpha = 0.6, wd = 0.3, eps = 0.05;
  SGDPH optimizer(
      parameters, SGDPHOptions(lr)
                      .rule(Rule::Paper)
                      .lr_so(tau)
                      .momentum(b)
                      .hessian_momentum(alpha)
                      .weight_decay(wd)
                      .eps(eps)
                      .shift_guard(false));
  auto X = x.detach().clone(), W = w.detach().clone(), Y = y.detach().clone();
  auto mx = torch::zeros_like(X), mw = torch::zeros_like(W), my = torch::zeros_like(Y);
  auto hx = torch::zeros_like(X), hy = torch::zeros_like(Y);
  for (int t = 1; t <= 5; ++t) {
    mx = (1 - b) * mx + b * a.mv(X);
    mw = (1 - b) * mw + b * 2 * W;
    my = (1 - b) * my + b * Y;
    hx = (1 - alpha) * hx + alpha * (h + eps);
    hy = (1 - alpha) * hy + alpha * (1 + eps);
    X = X - lr * (tau * mx / hx + wd * X);
    Y = Y - lr * (tau * my / hy + wd * Y);
    W = W - lr * (mw + wd * W);
    train_step(optimizer, loss);
    expect(x, X, "block");
    expect(y, Y, "second block");
    expect(w, W, "matrix");
    EXPECT_EQ(optimizer.last_step().products, 2);
  }
}

TEST_F(Quadratic, ReferenceUsesABlocksOwnRefreshCountUnderOtherSchedules) {
  const double lr = 0.1, tau = 0.01, mu = 0.8, eps = 0.05;
  for (const auto refresh : {Refresh::All, Refresh::Cyclic}) {
    x = leaf({0.7, -0.4});
    SGDPH optimizer(
        Parameters{x, y}, SGDPHOptions(lr)
                              .lr_so(tau)
                              .momentum(mu)
                              .hessian_momentum(mu)
                              .eps(eps)
                              .refresh(refresh)
                              .refresh_every(2)
                              .shift_guard(false));
    auto X = x.detach().clone();
    auto buffer = torch::zeros_like(X), diag = torch::zeros_like(X);
    int refreshes = 0;
    for (int t = 1; t <= 9; ++t) {
      // All: at steps 1, 3, 5, ...; Cyclic with two turns: at 1, 5, 9.
      if (refresh == Refresh::All ? t % 2 == 1 : t % 4 == 1) {
        diag = mu * diag + (1 - mu) * h;
        ++refreshes;
      }
      buffer = mu * buffer + a.mv(X);
      X = X - lr * tau * (1 - std::pow(mu, refreshes)) * buffer / (diag + eps);
      train_step(optimizer, loss);
      expect(x, X, to_string(refresh));
    }
  }
}

TEST_F(Quadratic, ABlockNotRefreshedYetIsFirstOrderUnlessAsPublished) {
  const auto second = leaf({0.7, -0.4});
  const auto both = [&] { return loss() + 0.5 * second.dot(a.mv(second)); };
  // Paper read as one block per step: at step 1 only x has been refreshed.
  SGDPH paper(Parameters{x, second}, SGDPHOptions(0.1).rule(Rule::Paper).refresh(Refresh::Cyclic).shift_guard(false));
  const auto before = second.detach().clone();
  train_step(paper, both);
  expect(second, before - 0.1 * 0.9 * a.mv(before), "first-order step");
  // Reference as published: divided by eps alone, corrected by 1 - alpha.
  const auto third = leaf({0.7, -0.4});
  SGDPH reference(Parameters{x, third, y}, SGDPHOptions(0.1).eps(0.02).shift_guard(false));
  train_step(reference, [&] { return loss() + 0.5 * third.dot(a.mv(third)); });
  expect(third, before - 0.1 * 1e-3 * (1 - 0.9) / 0.02 * a.mv(before), "published start");
}

TEST_F(Quadratic, SignedEstimatesAreAveragedBeforeTheyAreRectified) {
  // Probes given by hand: z = (1, 1) and (1, -1) alternate, so estimates are (4, 2) and (-2, -4): their signs differ,
  // and an average of absolute values would be another.
  const auto coupled = torch::tensor({{1.0, 3.0}, {3.0, -1.0}}, torch::kFloat64);
  const double lr = 0.1, tau = 0.01, alpha = 0.6, eps = 0.05;
  SGDPH optimizer(
      Parameters{x}, SGDPHOptions(lr)
                         .rule(Rule::Paper)
                         .probe(Probe::Rademacher)
                         .lr_so(tau)
                         .momentum(1)
                         .hessian_momentum(alpha)
                         .eps(eps)
                         .curvature_floor(0));
  int calls = 0;
  optimizer.set_probe_source([&](const at::Tensor& p) {
    return torch::tensor({1.0, calls++ % 2 == 0 ? 1.0 : -1.0}, p.options().requires_grad(false));
  });
  auto X = x.detach().clone(), average = torch::zeros_like(X);
  for (int t = 1; t <= 4; ++t) {
    const auto z = torch::tensor({1.0, t % 2 == 1 ? 1.0 : -1.0}, torch::kFloat64);
    average = (1 - alpha) * average + alpha * z * coupled.mv(z);
    X = X - lr * tau * coupled.mv(X) / (average.abs() + eps);
    train_step(optimizer, [&] { return 0.5 * x.dot(coupled.mv(x)); });
    expect(x, X, "block");
  }
  EXPECT_EQ(calls, 4);
}

TEST_F(Quadratic, TheFloorBoundsTheMultiplierRelativeToTheBlock) {
  x = leaf({1, 1, 1});
  const auto diagonal = torch::tensor({1e-9, 1.0, 2.0}, torch::kFloat64);
  const auto cost = [&] { return 0.5 * (diagonal * x.square()).sum(); };
  for (const auto& [probe, floor] :
       {std::pair(Probe::Ones, 0.0), std::pair(Probe::Rademacher, 0.1), std::pair(Probe::Hadamard, 0.1)}) {
    SGDPHOptions options(1);
    options.rule(Rule::Paper).probe(probe).lr_so(1).momentum(1).hessian_momentum(1).eps(1e-6).shift_guard(false);
    EXPECT_EQ(options.effective_curvature_floor(), floor);
    x = leaf({1, 1, 1});
    SGDPH optimizer(Parameters{x}, options);
    train_step(optimizer, cost);
    const double mean = diagonal.mean().item<double>();
    const auto denominator = torch::maximum(diagonal, torch::full_like(diagonal, floor * mean)) + 1e-6;
    expect(x, 1 - diagonal / denominator, to_string(probe));
  }
}

TEST_F(Quadratic, MomentumZeroIsPlainGradientDescent) {
  SGDPH optimizer(parameters, SGDPHOptions(0.1).momentum(0).hessian_momentum(0).shift_guard(false));
  for (int t = 0; t < 3; ++t) {
    const auto before = w.detach().clone();
    const auto block = x.detach().clone();
    train_step(optimizer, loss);
    expect(w, before - 0.1 * 2 * before, "matrix");
    expect(x, block - 0.1 * 1e-3 * a.mv(block) / (h + 1e-4), "block");
  }
}

TEST_F(Quadratic, GroupsKeepTheirOwnOptions) {
  auto second = leaf({0.7, -0.4});
  Groups groups;
  groups.push_back(group({x}, SGDPHOptions(0.1).rule(Rule::Paper)));
  groups.push_back(group({second}, SGDPHOptions(0.2).rule(Rule::Paper).lr_so(0.01).eps(1).weight_decay(0.5)));
  SGDPH optimizer(groups, SGDPHOptions(0.1).rule(Rule::Paper));
  const auto before = x.detach().clone();
  train_step(optimizer, [&] { return loss() + 0.5 * second.dot(a.mv(second)); });
  expect(x, before - 0.1 * 1e-3 * a.mv(before) / (h + 1e-4), "first group");
  expect(second, before - 0.2 * (0.01 * a.mv(before) / (h + 1) + 0.5 * before), "second group");
}

TEST_F(Quadratic, TheCurvatureFilterSeesTheDenominatorAndReplacesIt) {
  SGDPH optimizer(Parameters{x}, SGDPHOptions(0.1).rule(Rule::Paper).momentum(1).eps(0.05));
  at::Tensor seen;
  optimizer.set_curvature_filter([&](const at::Tensor& curvature) {
    seen = curvature.clone();
    return torch::full_like(curvature, 0.5);
  });
  const auto before = x.detach().clone();
  train_step(optimizer, [&] { return 0.5 * x.dot(a.mv(x)); });
  expect(seen, 0.9 * (h + 0.05), "denominator");
  expect(x, before - 0.1 * 1e-3 * a.mv(before) / 0.5, "one multiplier for all");
}

TEST_F(Quadratic, AllReduceIsAppliedToTheSignedCurvature) {
  // Another rank whose row sums are the negative of ours less one: the average is -0.5 everywhere.
  for (const bool in_place : {true, false}) {
    SGDPH optimizer(Parameters{x}, SGDPHOptions(0).rule(Rule::Paper).shift_guard(false));
    const auto average = [&](const at::Tensor& ours) {
      auto other = ours.clone();  // of one flat tensor, which the estimate opens
      other.narrow(0, 0, 2).copy_(-a.sum(1) - 1);
      return (ours + other) / 2;
    };
    if (in_place) {
      optimizer.set_all_reduce([&](at::Tensor& tensor) { tensor.copy_(average(tensor)); });
    } else {
      optimizer.set_all_reduce([&](const at::Tensor& tensor) { return average(tensor); });
    }
    train_step(optimizer, loss);
    expect(optimizer.last_step().blocks_refreshed[0].estimate, torch::full_like(x, -0.5).detach(), "averaged");
    optimizer.set_all_reduce(nullptr);
    train_step(optimizer, loss);
    expect(optimizer.last_step().blocks_refreshed[0].estimate, a.sum(1), "ours alone");
  }
}

TEST(SGDPH, Float32FollowsFloat64) {
  auto single = make_problem("BatchNorm", torch::kFloat32);
  auto twice = make_problem("BatchNorm", torch::kFloat64);
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < single.model->parameters().size(); ++i) {
    twice.model->parameters()[i].copy_(single.model->parameters()[i]);
  }
  twice.inputs.copy_(single.inputs);
  twice.labels.copy_(single.labels);
  torch::AutoGradMode grad(true);
  SGDPH a(*single.model, SGDPHOptions(0.05));
  SGDPH b(*twice.model, SGDPHOptions(0.05));
  for (int t = 0; t < 10; ++t) {
    train_step(a, [&] { return single.loss(); });
    train_step(b, [&] { return twice.loss(); });
  }
  for (size_t i = 0; i < single.model->parameters().size(); ++i) {
    EXPECT_TRUE(
        torch::allclose(single.model->parameters()[i].to(torch::kFloat64), twice.model->parameters()[i], 1e-3, 1e-4));
  }
}

}  // namespace
}  // namespace sgdph::test::sgd_ph_test
