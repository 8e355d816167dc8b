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
using sgd_ph::has_evidence;
using sgd_ph::Look;
using sgd_ph::miss_look;
using sgd_ph::take_look;

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

std::string reason_of(const SGDPH& optimizer, const at::Tensor& parameter) {
  for (const auto& entry : optimizer.partition().entries) {
    if (entry.parameter.is_same(parameter)) return entry.reason;
  }
  return "";
}

class ShiftGuard : public testing::TestWithParam<torch::Dtype> {
 protected:
  Net net{GetParam()};
  std::function<at::Tensor()> loss = [this] { return net.loss(); };
  // All 1-D parameters are blocks: conv.bias, bn.*, hidden.bias, ln.*, out.bias.
  std::vector<at::Tensor> parameters = net.parameters();
  const std::set<std::string> invariant{"group 0 parameter 5", "group 0 parameter 9"};
};

TEST_P(ShiftGuard, MarksExactlyTheInvariantBlocksAtTheSecondLook) {
  SGDPH optimizer(parameters, SGDPHOptions(0.01).rule(Rule::Paper));
  train_step(optimizer, loss);
  EXPECT_TRUE(marked(optimizer).empty()) << "one look is no evidence";
  EXPECT_EQ(optimizer.partition().blocks(), 4) << "but reason enough not to divide by it";
  EXPECT_EQ(optimizer.last_step().products, 2 * 7) << "one extra product per block, at its first refresh";
  EXPECT_EQ(optimizer.last_step().blocks_refreshed.size(), 4);
  train_step(optimizer, loss);
  EXPECT_EQ(marked(optimizer), invariant);
  EXPECT_EQ(optimizer.last_step().products, 4 + 2 * 3) << "the zero block is asked again, too";
  train_step(optimizer, loss);
  EXPECT_EQ(marked(optimizer), invariant);
  EXPECT_EQ(optimizer.last_step().products, 4 + 2) << "the zero block at its turns 1, 2, 4, ..., no marked one";
  train_step(optimizer, loss);
  EXPECT_EQ(optimizer.last_step().products, 4);
  EXPECT_EQ(marked(optimizer), invariant);
  EXPECT_EQ(reason_of(optimizer, net.conv->bias), "1-D, no curvature above rounding so far");
}

TEST_P(ShiftGuard, LooksAgainAtAMarkEverySixteenthTurnAndAtNothingAtTurnsThatArePowersOfTwo) {
  SGDPH optimizer(parameters, SGDPHOptions(0).rule(Rule::Paper));
  std::vector<int64_t> looks;
  for (int64_t turn = 0; turn < 40; ++turn) {
    train_step(optimizer, loss);
    looks.push_back((optimizer.last_step().products - 4) / 2);
  }
  // Two invariant blocks at 0, 1, 17, 33; the zero block at 0, 1, 2, 4, 8, 16, 32; the four others at 0, once.
  std::vector<int64_t> expected(40);
  for (const auto turn : {0, 1, 17, 33}) expected[turn] += 2;
  for (const auto turn : {0, 1, 2, 4, 8, 16, 32}) expected[turn] += 1;
  expected[0] += 2;  // the second product of four
  EXPECT_EQ(looks, expected);
  EXPECT_EQ(marked(optimizer), invariant);
}

TEST_P(ShiftGuard, NamesThemInOneLine) {
  testing::internal::CaptureStderr();
  SGDPH optimizer(parameters, SGDPHOptions(0.01).rule(Rule::Paper));
  for (int step = 0; step < 20; ++step) train_step(optimizer, loss);
  const auto notice = testing::internal::GetCapturedStderr();
  EXPECT_NE(notice.find("group 0 parameter 5, group 0 parameter 9"), std::string::npos) << notice;
  EXPECT_EQ(std::count(notice.begin(), notice.end(), '\n'), 1) << notice;
}

TEST_P(ShiftGuard, MarkedBlocksTakeTheFirstOrderStep) {
  for (const auto rule : {Rule::Reference, Rule::Paper}) {
    const auto options = SGDPHOptions(0.05).rule(rule).weight_decay(0.01).refresh(Refresh::All);
    SGDPH guarded(parameters, options);
    for (int step = 0; step < 2; ++step) train_step(guarded, loss);
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
  for (int step = 0; step < 7 + 7 + 6 + 5; ++step) {
    train_step(optimizer, loss);
    const auto& blocks = optimizer.last_step().blocks_refreshed;
    const bool looked = optimizer.last_step().products == 2;
    refreshed.push_back(!blocks.empty() ? blocks[0].name.substr(18) : looked ? "look" : "-");
  }
  // conv.bias (1) is looked at at its turns 0, 1, 2, hidden.bias (5) is marked at its second; the last parameter lets
  // its turn pass.
  const std::vector<std::string> expected{"look", "2",    "3", "look", "6", "7",    "-", "look", "2",
                                          "3",    "look", "6", "7",    "-", "look", "2", "3",    "6",
                                          "7",    "-",    "2", "3",    "6", "7",    "-"};
  EXPECT_EQ(refreshed, expected);
  EXPECT_EQ(marked(optimizer), (std::set<std::string>{"group 0 parameter 5"}));
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
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    optimizer.update_curvature(net.loss());
    net.loss().backward();
    optimizer.step();
  }
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
      for (int step = 0; step < 2; ++step) {
        train_step(optimizer, [&] { return nn::functional::cross_entropy(layer(inputs), labels); });
        EXPECT_EQ(optimizer.partition().blocks(), 0) << classes << " classes, seed " << seed;
      }
      EXPECT_EQ(marked(optimizer).size(), 1) << classes << " classes, seed " << seed;
    }
  }
}

TEST(ShiftGuardAndBiasCorrection, TheExponentCountsTheRemainingRotationOnly) {
  // a is found to be shift-invariant at its turn; b and c stay, then the last: M falls from 4 to 3.
  auto a = leaf({1, 2}), b = leaf({0.5, 0.5}), c = leaf({0.5, 0.5}), last = leaf({1});
  const auto cost = [&] {
    return (a[0] - a[1]).pow(2) * 0.3 + b.square().sum() + c.square().sum() + last.square().sum();
  };
  const double lr = 0.1, tau = 1e-3, mu = 0.5, alpha = 0.7, eps = 0.1;
  SGDPH optimizer(Parameters{a, b, c, last}, SGDPHOptions(lr).lr_so(tau).momentum(mu).hessian_momentum(alpha).eps(eps));
  auto B = b.detach().clone(), momentum = torch::zeros_like(B);
  double diag = 0;
  // Whose step it is: a's looks count for nothing.
  const std::string steps = "abclabclbclbcl";
  int turns = 0;
  for (size_t t = 0; t < steps.size(); ++t) {
    if (steps[t] == 'b') diag = alpha * diag + (1 - alpha) * 2;
    if (steps[t] != 'a') ++turns;
    const double correction = 1 - std::pow(alpha, turns / 3 + 1);
    momentum = mu * momentum + 2 * B;
    B = B - lr * tau * correction * momentum / (diag + eps);
    train_step(optimizer, cost);
    EXPECT_TRUE(torch::allclose(b.detach(), B, 1e-12, 1e-14)) << "step " << t;
  }
  EXPECT_EQ(marked(optimizer).size(), 1);
}

TEST(ShiftGuardAndBiasCorrection, ABlockThatJoinsLateIsCorrectedByItsOwnAge) {
  // Flat at first, then curved: the first estimates would be divided by nearly 1 - a^(rounds so far).
  auto late = leaf({0.5, -0.5}), b = leaf({0.5, 0.5}), last = leaf({1});
  double weight = 0;
  const auto cost = [&] { return late.square().sum() * weight + b.square().sum() + last.square().sum(); };
  const double alpha = 0.9, eps = 0.1;
  SGDPH optimizer(Parameters{late, b, last}, SGDPHOptions(0.1).momentum(0).hessian_momentum(alpha).eps(eps));
  for (int step = 0; step < 60; ++step) train_step(optimizer, cost);
  EXPECT_EQ(optimizer.param_state(late)->refreshes(), 0);
  weight = 1;
  while (optimizer.param_state(late)->refreshes() == 0) {
    ASSERT_EQ(optimizer.partition().entries[0].second_order, false);
    train_step(optimizer, cost);
  }
  // Refreshed just now: c = (1 - a) 2, of one or two terms.
  const auto before = late.detach().clone();
  train_step(optimizer, cost);
  const auto step = ((before - late.detach()) / (2 * before)).mean().item<double>();
  EXPECT_NEAR(step, 0.1 * 1e-3 * (1 - alpha * alpha) / ((1 - alpha) * 2 + eps), 1e-9);
}

TEST(Guard, TheBoundGoesByTheCoarsestType) {
  EXPECT_EQ(sgd_ph::tolerance(torch::kFloat64), 1e3 * std::numeric_limits<double>::epsilon());
  EXPECT_EQ(sgd_ph::tolerance(torch::kFloat32), 1e3 * std::numeric_limits<float>::epsilon());
  EXPECT_EQ(sgd_ph::tolerance(torch::kHalf), 1e-2) << "a thousand epsilons are no small number";
  EXPECT_EQ(sgd_ph::tolerance(torch::kBFloat16), 1e-2);
}

TEST(Guard, FindsTheCoarsestTypeOfAGraph) {
  auto w = torch::ones({3}).requires_grad_(true);
  const auto gradient = [&](const at::Tensor& y) { return torch::autograd::grad({y.sum()}, {w}, {}, true, true)[0]; };
  EXPECT_EQ(sgd_ph::coarsest_type(gradient(w.exp())), torch::kFloat32);
  EXPECT_EQ(sgd_ph::coarsest_type(gradient(w.to(torch::kFloat64).exp())), torch::kFloat32);
  EXPECT_EQ(sgd_ph::coarsest_type(gradient(w.to(torch::kBFloat16).exp().to(torch::kFloat32))), torch::kBFloat16);
  EXPECT_EQ(sgd_ph::coarsest_type(torch::ones({3})), torch::kFloat32) << "no graph";
}

Look look(double row_sum, double product, double gradient, double scale = 1) {
  return {row_sum, product, gradient, 4, scale, torch::kFloat64};
}

TEST(Guard, EvidenceIsAProductOrAGradientAboveRounding) {
  EXPECT_TRUE(has_evidence(look(1, 1, 1)));
  EXPECT_FALSE(has_evidence(look(1e-16, 1e-16, 1e-16))) << "a zero block";
  EXPECT_TRUE(has_evidence(look(1e-16, 1e-16, 1))) << "a gradient";
  EXPECT_TRUE(has_evidence(look(1, 1, 1e-16))) << "curvature";
  EXPECT_FALSE(has_evidence(look(0, 0, 1))) << "nothing at all";
  for (const double scale : {1e-12, 1e12}) EXPECT_TRUE(has_evidence(look(scale, scale, scale, scale)));
}

TEST(Guard, SmallButRealCurvatureIsKept) {
  // Row sum a thousandth of the random product, at any scale of the loss.
  for (const double scale : {1e-12, 1.0, 1e12}) {
    SGDPHParamState state;
    take_look(state, look(1e-3 * scale, scale, scale, scale));
    EXPECT_EQ(state.finding(), Finding::Curved);
    state = {};
    take_look(state, look(1e-14 * scale, scale, scale, scale));
    EXPECT_EQ(state.finding(), Finding::Suspect);
  }
}

/// What the looks make of a new state, in the letters Unknown, Curved, No evidence, Suspect, marked (M), not measurable
/// (X).
std::string findings(const std::string& looks) {
  SGDPHParamState state;
  std::string found;
  for (const auto what : looks) {
    if (what == '0') take_look(state, look(0, 0, 1));      // no product
    if (what == 'v') take_look(state, look(1e-14, 1, 1));  // the row sum vanishes
    if (what == 'n') take_look(state, look(1e-12, 1, 1));  // nearly: 5 tolerances
    if (what == 'c') take_look(state, look(1, 1, 1));      // it does not
    if (what == 'x') miss_look(state);
    found += "UCNSMX"[static_cast<size_t>(state.finding())];
  }
  return found;
}

TEST(Guard, AMarkNeedsTwoLooksInARowAndCanBeTakenBack) {
  EXPECT_EQ(findings("vv"), "SM");
  EXPECT_EQ(findings("v0v"), "SNS") << "not in a row";
  EXPECT_EQ(findings("vc"), "SC");
  EXPECT_EQ(findings("000v"), "NNNS");
  EXPECT_EQ(findings("vvc"), "SMC") << "taken back";
  EXPECT_EQ(findings("vvn"), "SMM") << "not for so little";
  EXPECT_EQ(findings("n"), "C");
  EXPECT_EQ(findings("vv0"), "SMM") << "no evidence is no evidence against it";
  EXPECT_EQ(findings("xv"), "XS");
  EXPECT_EQ(findings("vxv"), "SSM") << "nothing was seen in between";
  EXPECT_EQ(findings("vvx"), "SMM");
}

}  // namespace
}  // namespace sgdph::test::shift_guard_test
