// Blocks whose row sum is rounding noise are found, named, stepped first-order and remembered.

#include "sgd_ph/shift_guard.h"

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace sgdph::test::shift_guard_test {
namespace {

namespace nn = torch::nn;
using sgd_ph::is_shift_invariant;

/// Linear before LayerNorm (shift-invariant), convolution bias before BatchNorm (a zero block), softmax bias.
struct Net : nn::Module {
  explicit Net(torch::Dtype dtype) {
    torch::manual_seed(3);
    register_module("conv", conv);
    register_module("bn", bn);
    register_module("hidden", hidden);
    register_module("ln", ln);
    register_module("out", out);
    to(dtype);
    inputs = torch::randn({16, 2, 8, 8}, dtype);
    labels = torch::randint(4, {16}, torch::kLong);
  }
  at::Tensor loss() {
    auto x = torch::relu(bn(conv(inputs))).mean(std::vector<int64_t>{2, 3});
    return nn::functional::cross_entropy(out(torch::tanh(ln(hidden(x)))), labels);
  }
  nn::Conv2d conv{nn::Conv2dOptions(2, 6, 3).padding(1)};
  nn::BatchNorm2d bn{6};
  nn::Linear hidden{6, 7};
  nn::LayerNorm ln{nn::LayerNormOptions({7})};
  nn::Linear out{7, 4};
  at::Tensor inputs, labels;
};

std::set<std::string> marked(SGDPH& optimizer) {
  std::set<std::string> names;
  for (const auto& entry : optimizer.partition().entries) {
    if (entry.reason.find("shift-invariant") != std::string::npos) names.insert(entry.name);
  }
  return names;
}

class ShiftGuard : public testing::TestWithParam<torch::Dtype> {
 protected:
  Net net{GetParam()};
  std::function<at::Tensor()> loss = [this] { return net.loss(); };
  // All 1-D parameters are blocks: conv.bias, bn.*, hidden.bias, ln.*, out.bias.
  std::vector<at::Tensor> parameters = net.parameters();
  const std::set<std::string> invariant{"group 0 parameter 1", "group 0 parameter 5", "group 0 parameter 9"};
};

TEST_P(ShiftGuard, MarksExactlyTheInvariantBlocks) {
  SGDPH optimizer(parameters, SGDPHOptions(0.01).rule(Rule::Paper));
  train_step(optimizer, loss);
  EXPECT_EQ(marked(optimizer), invariant);
  EXPECT_EQ(optimizer.last_step().products, 2 * 7) << "one extra product per block, at its first refresh";
  train_step(optimizer, loss);
  EXPECT_EQ(marked(optimizer), invariant);
  EXPECT_EQ(optimizer.last_step().products, 4) << "no check is repeated, no marked block is measured";
}

TEST_P(ShiftGuard, NamesThemInOneLine) {
  testing::internal::CaptureStderr();
  SGDPH optimizer(net, SGDPHOptions(0.01).rule(Rule::Paper));
  for (int step = 0; step < 3; ++step) train_step(optimizer, loss);
  const auto notice = testing::internal::GetCapturedStderr();
  EXPECT_NE(notice.find("conv.bias"), std::string::npos) << notice;
  EXPECT_EQ(std::count(notice.begin(), notice.end(), '\n'), 1) << notice;
}

TEST_P(ShiftGuard, MarkedBlocksTakeTheFirstOrderStep) {
  for (const auto rule : {Rule::Reference, Rule::Paper}) {
    const auto options = SGDPHOptions(0.05).rule(rule).weight_decay(0.01).refresh(Refresh::All);
    SGDPH guarded(parameters, options);
    train_step(guarded, loss);
    // What the first-order step of the rule does to the marked hidden.bias.
    auto bias = net.hidden->bias;
    const auto before = bias.detach().clone();
    const auto momentum = state_of<SGDPHParamState>(guarded, bias).momentum_buffer().clone();
    train_step(guarded, loss);
    const auto gradient = bias.grad();
    const auto expected = rule == Rule::Paper ? before - 0.05 * (0.1 * momentum + 0.9 * gradient + 0.01 * before)
                                              : before - 0.05 * (0.9 * momentum + gradient + 0.01 * before);
    EXPECT_TRUE(torch::allclose(bias.detach(), expected, 1e-5, 1e-8)) << rule;
  }
}

TEST_P(ShiftGuard, MarkedBlocksLeaveTheRotation) {
  SGDPH optimizer(parameters, SGDPHOptions(0.01));
  std::vector<std::string> refreshed;
  for (int step = 0; step < 7 + 10; ++step) {
    train_step(optimizer, loss);
    const auto& blocks = optimizer.last_step().blocks_refreshed;
    refreshed.push_back(blocks.empty() ? "-" : blocks[0].name);
  }
  const std::string a = "group 0 parameter 2", b = "group 0 parameter 3", c = "group 0 parameter 6",
                    d = "group 0 parameter 7";
  // First cycle: conv.bias and hidden.bias are found out at their turn, the last parameter lets its turn pass.
  const std::vector<std::string> expected{"-", a, b, "-", c, d, "-", a, b, c, d, "-", a, b, c, d, "-"};
  EXPECT_EQ(refreshed, expected);
  EXPECT_EQ(marked(optimizer), (std::set<std::string>{"group 0 parameter 1", "group 0 parameter 5"}));
}

TEST_P(ShiftGuard, OffMarksNothing) {
  SGDPH optimizer(parameters, SGDPHOptions(0.01).rule(Rule::Paper).shift_guard(false));
  train_step(optimizer, loss);
  EXPECT_TRUE(marked(optimizer).empty());
  EXPECT_EQ(optimizer.last_step().products, 7);
}

TEST_P(ShiftGuard, OtherProbesNeedNoGuard) {
  for (const auto probe : {Probe::Rademacher, Probe::Hadamard}) {
    SGDPH optimizer(parameters, SGDPHOptions(0.0).rule(Rule::Paper).probe(probe));
    train_step(optimizer, loss);
    EXPECT_TRUE(marked(optimizer).empty());
    EXPECT_EQ(optimizer.last_step().products, 7);
  }
}

TEST_P(ShiftGuard, AlsoWorksThroughUpdateCurvature) {
  SGDPH optimizer(parameters, SGDPHOptions(0.01).rule(Rule::Paper));
  optimizer.zero_grad();
  optimizer.update_curvature(net.loss());
  net.loss().backward();
  optimizer.step();
  EXPECT_EQ(marked(optimizer), invariant);
}

INSTANTIATE_TEST_SUITE_P(Types, ShiftGuard, testing::Values(torch::kFloat64, torch::kFloat32), [](const auto& info) {
  return info.param == torch::kFloat64 ? "float64" : "float32";
});

TEST(ShiftGuardOnSmallBlocks, FindsASoftmaxBiasOfAnySizeWhateverTheSeed) {
  for (const int64_t classes : {2, 3, 4, 7}) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      torch::manual_seed(seed);
      nn::Linear layer(5, classes);
      layer->to(torch::kFloat64);
      SGDPH optimizer(layer->parameters(), SGDPHOptions(0.1).rule(Rule::Paper).seed(seed));
      const auto inputs = torch::randn({9, 5}, torch::kFloat64);
      const auto labels = torch::randint(classes, {9}, torch::kLong);
      train_step(optimizer, [&] { return nn::functional::cross_entropy(layer(inputs), labels); });
      EXPECT_EQ(optimizer.partition().blocks(), 0) << classes << " classes, seed " << seed;
    }
  }
}

TEST(ShiftGuardAndBiasCorrection, TheExponentCountsTheRemainingRotationOnly) {
  // a is found to be a zero block at its turn; b and c stay, then the last: M falls from 4 to 3.
  auto a = leaf({1, 2}), b = leaf({0.5, 0.5}), c = leaf({0.5, 0.5}), last = leaf({1});
  const auto cost = [&] { return (a * 0.3).sum() + b.square().sum() + c.square().sum() + last.square().sum(); };
  const double lr = 0.1, tau = 1e-3, mu = 0.5, alpha = 0.7, eps = 0.1;
  SGDPH optimizer(Parameters{a, b, c, last}, SGDPHOptions(lr).lr_so(tau).momentum(mu).hessian_momentum(alpha).eps(eps));
  auto B = b.detach().clone(), momentum = torch::zeros_like(B);
  double diag = 0;
  for (int t = 1; t <= 12; ++t) {
    // Turns after a's: b, c, last, b, c, last, ...
    if (t % 3 == 2) diag = alpha * diag + (1 - alpha) * 2;
    const int turns = t - 1;
    const double correction = 1 - std::pow(alpha, turns / 3 + 1);
    momentum = mu * momentum + 2 * B;
    B = B - lr * tau * correction * momentum / (diag + eps);
    train_step(optimizer, cost);
    EXPECT_TRUE(torch::allclose(b.detach(), B, 1e-12, 1e-14)) << "step " << t;
  }
}

TEST(IsShiftInvariant, HalfPrecisionKeepsBlocksThatAreNot) {
  for (const auto type : {torch::kHalf, torch::kBFloat16}) {
    const auto product = torch::tensor({1.0, -2.0, 1.5}).to(type);
    EXPECT_FALSE(is_shift_invariant(0.1 * product, product, product, 1.0));
    EXPECT_TRUE(is_shift_invariant(1e-3 * product, product, product, 1.0));
  }
}

TEST(IsShiftInvariant, SmallButRealCurvatureIsKept) {
  // Row sum a thousandth of the random product, at any scale of the loss.
  for (const double scale : {1e-12, 1.0, 1e12}) {
    const auto product = torch::tensor({1.0, -2.0, 1.5}, torch::kFloat64) * scale;
    EXPECT_FALSE(is_shift_invariant(1e-3 * product, product, product, scale));
    EXPECT_TRUE(is_shift_invariant(1e-14 * product, product, product, scale));
  }
}

TEST(IsShiftInvariant, AZeroBlockNeedsZeroGradientAndZeroProduct) {
  const auto one = torch::ones({4}, torch::kFloat64);
  EXPECT_TRUE(is_shift_invariant(1e-16 * one, 1e-16 * one, 1e-16 * one, 1.0));
  EXPECT_FALSE(is_shift_invariant(1e-16 * one, 1e-16 * one, one, 1.0)) << "a gradient: not a zero block";
  EXPECT_FALSE(is_shift_invariant(one, one, 1e-16 * one, 1.0)) << "curvature: not a zero block";
  EXPECT_TRUE(is_shift_invariant(0 * one, 0 * one, one, 1.0)) << "no curvature at all";
}

}  // namespace
}  // namespace sgdph::test::shift_guard_test
