// Apollo beyond the golden trajectories: belief, stable decay, warm-up.

#include "support/training.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sgdph::test::apollo_test {
namespace {

void expect_follows(const ApolloOptions& options) {
  auto x = leaf({0.7, -1.3, 0.2});
  const auto h = torch::tensor({2.0, 0.5, -1.0}, torch::kFloat64);
  Apollo optimizer(Parameters{x}, options);
  const double wd = options.weight_decay(), beta = options.beta();
  const bool belief = options.rebound() == "belief";
  const auto decay = options.effective_weight_decay_type();
  auto X = x.detach().clone(), m = torch::zeros_like(X), B = torch::zeros_like(X), d = torch::zeros_like(X);
  for (int t = 1; t <= 10; ++t) {
    train_step(optimizer, [&] { return 0.5 * (h * x.square()).sum() + x.pow(3).sum(); });
    const double first = options.init_lr().value_or(options.lr() / 1000);
    const double lr =
        t - 1 < options.warmup() ? first + (options.lr() - first) * (t - 1) / options.warmup() : options.lr();
    auto g = h * X + 3 * X.square();
    if (decay == "L2") g = g + wd * X;
    const double A = (1 - beta) / (1 - std::pow(beta, t));
    const auto y = g - m;
    m = m + A * y;
    const double r = belief ? y.abs().max().item<double>() : 0.01;
    const double e = belief ? options.eps() : options.eps() / 0.01;
    const auto n = d.norm(4) + e;
    const auto u = d / n;
    const auto s = -(A / n) * (y * u).sum() - (B * u * u).sum();
    B = B + s * u * u;
    auto C = B.abs().clamp_min(r);
    if (belief) C = C + e / A;
    d = m / C;
    if (decay == "decoupled") d = d + wd * X;
    if (decay == "stable") d = d + wd / C.mean() * X;
    X = X - lr * d;
    EXPECT_TRUE(torch::allclose(x.detach(), X, 1e-12, 1e-14)) << "step " << t;
  }
}

TEST(Apollo, FollowsItsFormulaForEveryReboundAndDecay) {
  for (const std::string rebound : {"constant", "belief"}) {
    for (const std::string decay : {"L2", "decoupled", "stable"}) {
      SCOPED_TRACE(rebound + " " + decay);
      expect_follows(
          ApolloOptions(0.03).beta(0.8).rebound(rebound).warmup(4).weight_decay(0.2).weight_decay_type(decay));
      expect_follows(ApolloOptions(0.03).rebound(rebound).warmup(0).weight_decay(0.2));
    }
  }
}

TEST(Apollo, ASchedulerHasNoEffectDuringWarmup) {
  auto a = leaf({0.7}), b = leaf({0.7});
  Apollo plain(Parameters{a}, ApolloOptions(0.1).warmup(3));
  Apollo scheduled(Parameters{b}, ApolloOptions(0.1).warmup(3));
  for (int t = 1; t <= 4; ++t) {
    scheduled.param_groups()[0].options().set_lr(0.5);
    train_step(plain, [&] { return a.square().sum(); });
    train_step(scheduled, [&] { return b.square().sum(); });
    EXPECT_EQ(torch::equal(a, b), t <= 3) << "step " << t;
  }
}

}  // namespace
}  // namespace sgdph::test::apollo_test
