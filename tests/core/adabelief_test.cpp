// AdaBelief beyond the golden trajectories: the options they do not cover, in closed form.

#include "support/training.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sgdph::test::adabelief_test {
namespace {

/// One scalar with gradient x: runs our optimizer and the formula side by side.
void expect_follows(const AdaBeliefOptions& options) {
  auto x = leaf({0.7});
  AdaBelief optimizer(Parameters{x}, options);
  const auto [b1, b2] = options.betas();
  const double lr = options.lr(), eps = options.eps(), wd = options.weight_decay();
  double X = 0.7, m = 0, s = 0, largest = 0;
  for (int t = 1; t <= 12; ++t) {
    train_step(optimizer, [&] { return 0.5 * x.square().sum(); });
    double g = X;
    if (options.weight_decouple()) {
      X *= options.fixed_decay() ? 1 - wd : 1 - lr * wd;
    } else {
      g += wd * X;
    }
    m = b1 * m + (1 - b1) * g;
    s = b2 * s + (1 - b2) * (g - m) * (g - m) + eps;
    largest = std::max(largest, s);
    const double c1 = 1 - std::pow(b1, t), c2 = 1 - std::pow(b2, t);
    const double R = 2 / (1 - b2) - 1, N = R - 2 * t * std::pow(b2, t) / c2;
    if (!options.rectify()) {
      X -= lr / c1 * m / (std::sqrt(options.amsgrad() ? largest : s) / std::sqrt(c2) + eps);
    } else if (N >= 5) {
      X -= lr * std::sqrt(c2 * (N - 4) * (N - 2) * R / ((R - 4) * (R - 2) * N)) / c1 * m / (std::sqrt(s) + eps);
    } else if (options.degenerated_to_sgd()) {
      X -= lr * m / c1;
    }
    EXPECT_NEAR(x.item<double>(), X, 1e-13) << "step " << t;
  }
}

TEST(AdaBelief, FollowsItsFormulaForEveryOption) {
  const AdaBeliefOptions base = AdaBeliefOptions(0.05).betas({0.8, 0.9}).eps(1e-3).weight_decay(0.1);
  for (const bool amsgrad : {false, true}) {
    for (const bool decouple : {false, true}) {
      for (const bool fixed : {false, true}) {
        for (const bool rectify : {false, true}) {
          for (const bool degenerate : {false, true}) {
            SCOPED_TRACE(testing::Message() << amsgrad << decouple << fixed << rectify << degenerate);
            expect_follows(AdaBeliefOptions(base)
                               .amsgrad(amsgrad)
                               .weight_decouple(decouple)
                               .fixed_decay(fixed)
                               .rectify(rectify)
                               .degenerated_to_sgd(degenerate));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace sgdph::test::adabelief_test
