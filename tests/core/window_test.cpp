// Curvature accumulates as gradients do: however a step's loss is handed in, the step is that of the sum.

#include "support/networks.h"
#include "support/quadratic.h"
#include "support/ranks.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>

namespace sgdph::test::window_test {
namespace {

constexpr int kSteps = 30;
constexpr double kTolerance = 1e-14;

struct Way {
  const char* name;
  std::function<std::unique_ptr<CurvatureOptimizer>(Problem&)> make;
};

Way sgd_ph(const char* name, const SGDPHOptions& options) {
  return {name, [options](Problem& problem) { return std::make_unique<SGDPH>(*problem.model, options); }};
}

const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      sgd_ph("Ones Cyclic", SGDPHOptions(0.05)),
      sgd_ph("Ones Cyclic unguarded", SGDPHOptions(0.05).shift_guard(false)),
      sgd_ph("Ones All", SGDPHOptions(0.05).refresh(Refresh::All)),
      sgd_ph("Algorithm 1", SGDPHOptions(0.05).rule(Rule::Paper)),
      sgd_ph("Rademacher Cyclic", SGDPHOptions(0.05).probe(Probe::Rademacher)),
      sgd_ph("Rademacher All", SGDPHOptions(0.05).probe(Probe::Rademacher).refresh(Refresh::All)),
      sgd_ph("Rademacher Joint", SGDPHOptions(0.05).probe(Probe::Rademacher).refresh(Refresh::Joint)),
      sgd_ph(
          "Algorithm 1 Joint", SGDPHOptions(0.05).rule(Rule::Paper).probe(Probe::Rademacher).refresh(Refresh::Joint)),
      sgd_ph("Hadamard Cyclic", SGDPHOptions(0.05).probe(Probe::Hadamard)),
      sgd_ph("Hadamard All", SGDPHOptions(0.05).probe(Probe::Hadamard).refresh(Refresh::All)),
      sgd_ph("refresh_every", SGDPHOptions(0.05).refresh(Refresh::All).refresh_every(3)),
      {"AdaHessian",
       [](Problem& problem) {
         return std::make_unique<AdaHessian>(problem.model->parameters(), AdaHessianOptions(0.01));
       }},
  };
  return all;
}

/// What hands in the losses of one step, after the gradients were cleared.
using Step = std::function<void(CurvatureOptimizer& optimizer, Problem& problem, int step)>;

/// A batch of eight for each step: normalised by groups, so that parts of a batch are what they are within it.
void next_batch(Problem& problem, int step) {
  torch::manual_seed(1000 + step);
  problem.inputs = torch::randn({8, 2, 4, 4}, torch::kFloat64);
  problem.labels = torch::randint(4, {8}, torch::kLong);
}

at::Tensor loss_of(Problem& problem, int64_t begin, int64_t count) {
  return torch::nn::functional::cross_entropy(
      problem.model->forward(problem.inputs.narrow(0, begin, count)), problem.labels.narrow(0, begin, count));
}

at::Tensor other_loss(Problem& problem) {
  return 0.3 * problem.model->forward(problem.inputs.narrow(0, 0, 3)).square().mean();
}

Parameters train(const Way& way, const Step& step) {
  auto problem = make_problem("GroupNorm");
  const auto optimizer = way.make(problem);
  for (int t = 0; t < kSteps; ++t) {
    next_batch(problem, t);
    optimizer->zero_grad();
    step(*optimizer, problem, t);
    optimizer->step();
    EXPECT_TRUE(optimizer->last_step().applied) << way.name;
  }
  return problem.model->parameters();
}

void expect_same(const Parameters& found, const Parameters& expected, const char* what) {
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_LE((found[i] - expected[i]).abs().max().item<double>(), kTolerance) << what << ", parameter " << i;
  }
}

void expect_equal_steps(const Step& step, const Step& reference) {
  for (const auto& way : ways()) expect_same(train(way, step), train(way, reference), way.name);
}

void whole(CurvatureOptimizer& optimizer, Problem& problem, int) {
  optimizer.backward(problem.loss());
}

/// Against the whole batch at once, which is trained for the first test that asks.
void expect_equal_steps(const Way& way, const Step& step) {
  static std::map<std::string, Parameters> expected;
  auto& reference = expected[way.name];
  if (reference.empty()) reference = train(way, whole);
  expect_same(train(way, step), reference, way.name);
}

void expect_equal_steps(const Step& step) {
  for (const auto& way : ways()) expect_equal_steps(way, step);
}

TEST(Window, MicroBatchesAreTheBatch) {
  expect_equal_steps([](CurvatureOptimizer& optimizer, Problem& problem, int) {
    for (int i = 0; i < 4; ++i) optimizer.backward(loss_of(problem, 2 * i, 2) / 4);
  });
}

TEST(Window, GradientsThatCarryTheirGraphAreMeasuredAtTheStepAndLoseIt) {
  expect_equal_steps([](CurvatureOptimizer& optimizer, Problem& problem, int) {
    // By two calls, as other losses too.
    loss_of(problem, 0, 4).div(2).backward({}, /*retain_graph=*/true, /*create_graph=*/true);
    loss_of(problem, 4, 4).div(2).backward({}, /*retain_graph=*/true, /*create_graph=*/true);
  });
  auto problem = make_problem("GroupNorm");
  SGDPH optimizer(*problem.model, SGDPHOptions(0.05));
  next_batch(problem, 0);
  problem.loss().backward({}, true, true);
  ASSERT_TRUE(problem.model->parameters()[0].grad().requires_grad());
  optimizer.step();
  EXPECT_GT(optimizer.last_step().products, 0);
  for (const auto& parameter : problem.model->parameters()) EXPECT_FALSE(parameter.grad().requires_grad());
}

TEST(Window, TwoLossesAreTheirSum) {
  const auto sum = [](CurvatureOptimizer& optimizer, Problem& problem, int) {
    optimizer.backward(problem.loss() + other_loss(problem));
  };
  expect_equal_steps(
      [](CurvatureOptimizer& optimizer, Problem& problem, int) {
        optimizer.backward(problem.loss());
        optimizer.backward(other_loss(problem));
      },
      sum);
}

TEST(Window, TwoLossesOfOneGraphAreTheirSumAlsoWithBatchNorm) {
  const auto train = [](const Way& way, bool apart) {
    auto problem = make_problem("BatchNorm");
    const auto optimizer = way.make(problem);
    for (int t = 0; t < kSteps; ++t) {
      next_batch(problem, t);
      optimizer->zero_grad();
      const auto scores = problem.model->forward(problem.inputs);
      const auto first = torch::nn::functional::cross_entropy(scores, problem.labels);
      const auto second = 0.1 * scores.square().mean();
      if (apart) {
        optimizer->backward(first, /*retain_graph=*/true);
        optimizer->backward(second);
      } else {
        optimizer->backward(first + second);
      }
      optimizer->step();
    }
    return problem.model->parameters();
  };
  for (const auto& way : ways()) expect_same(train(way, true), train(way, false), way.name);
}

void unscale(Problem& problem, double scale) {
  for (const auto& parameter : problem.model->parameters()) parameter.mutable_grad().div_(scale);
}

TEST(Window, AScaledLossIsTheLoss) {
  expect_equal_steps([](CurvatureOptimizer& optimizer, Problem& problem, int) {
    optimizer.backward(problem.loss() * 65536, BackwardOptions().scale(65536));
    unscale(problem, 65536);
  });
  expect_equal_steps([](CurvatureOptimizer& optimizer, Problem& problem, int) {
    const auto scale = torch::tensor(1024.0f);
    for (int i = 0; i < 2; ++i) {
      optimizer.backward(loss_of(problem, 4 * i, 4) / 2 * scale, BackwardOptions().scale_tensor(scale));
    }
    unscale(problem, 1024);
  });
}

/// A way to throw away what a batch left.
struct Clear {
  const char* name;
  std::function<void(CurvatureOptimizer& optimizer, Problem& problem)> run;
};

void zero_by_hand(Problem& problem) {
  for (const auto& parameter : problem.model->parameters()) parameter.mutable_grad().zero_();
}

const std::vector<Clear>& clears() {
  static const std::vector<Clear> all{
      {"ours", [](CurvatureOptimizer& optimizer, Problem&) { optimizer.zero_grad(); }},
      {"the base's",
       [](CurvatureOptimizer& optimizer, Problem&) { static_cast<torch::optim::Optimizer&>(optimizer).zero_grad(); }},
      {"the module's, to zero", [](CurvatureOptimizer&, Problem& problem) { problem.model->zero_grad(false); }},
      {"the module's, to none", [](CurvatureOptimizer&, Problem& problem) { problem.model->zero_grad(true); }},
      {"by hand", [](CurvatureOptimizer&, Problem& problem) { zero_by_hand(problem); }},
      {"discard",
       [](CurvatureOptimizer& optimizer, Problem& problem) {
         zero_by_hand(problem);
         optimizer.discard();
       }},
  };
  return all;
}

enum Abandoned { kAfterBackward, kAfterBoth, kAfterCurvature };

/// Every third step comes after a batch that was measured and thrown away, some before it had gradients.
void expect_no_trace(const Way& way, const Clear& clear, Abandoned when) {
  SCOPED_TRACE(c10::str(clear.name, ", abandoned in way ", static_cast<int>(when)));
  expect_equal_steps(way, [&](CurvatureOptimizer& optimizer, Problem& problem, int step) {
    if (step % 3 == 0) {
      const auto abandoned = 100 * problem.loss();
      if (when == kAfterCurvature) {
        // Where there are none, that they are cleared cannot be seen.
        for (const auto& parameter : problem.model->parameters())
          parameter.mutable_grad() = torch::zeros_like(parameter);
      }
      if (when == kAfterBackward) optimizer.backward(abandoned);
      if (when != kAfterBackward) optimizer.update_curvature(abandoned);
      if (when == kAfterBoth) abandoned.backward();
      clear.run(optimizer, problem);
    }
    whole(optimizer, problem, step);
  });
}

TEST(Window, AnAbandonedBatchLeavesNoTrace) {
  ASSERT_EQ(ways().size(), 2 * clears().size()) << "each way with another";
  for (size_t i = 0; i < ways().size(); ++i) {
    expect_no_trace(ways()[i], clears()[i / 2], static_cast<Abandoned>(i % 3));
  }
}

TEST(SlowWindow, AnAbandonedBatchLeavesNoTraceWhateverTheWay) {
  for (const auto& way : ways()) {
    for (const auto& clear : clears()) {
      for (const auto when : {kAfterBackward, kAfterBoth, kAfterCurvature}) expect_no_trace(way, clear, when);
    }
  }
}

TEST(Window, ClearedGradientsEndWhatUpdateCurvatureBeganWhoeverClearsThem) {
  for (const auto& clear : clears()) {
    for (const bool defined : {true, false}) {
      auto problem = make_problem("GroupNorm");
      SGDPH optimizer(*problem.model, SGDPHOptions(0.01));
      for (const auto& parameter : problem.model->parameters()) {
        if (defined) parameter.mutable_grad() = torch::zeros_like(parameter);
      }
      optimizer.update_curvature(problem.loss());
      EXPECT_TRUE(optimizer.curvature_due());
      if (defined) clear.run(optimizer, problem);
      problem.loss().backward();
      optimizer.step();
      EXPECT_EQ(optimizer.last_step().products, defined ? 0 : 2) << clear.name << ", with the guard's product";
    }
  }
}

TEST(Window, UpdateCurvatureAccumulatesLikewise) {
  expect_equal_steps([](CurvatureOptimizer& optimizer, Problem& problem, int) {
    for (int i = 0; i < 2; ++i)
      optimizer.update_curvature(loss_of(problem, 4 * i, 4), BackwardOptions().represents(0.5));
    problem.loss().backward();
  });
}

TEST(Window, AMeasuredMicroBatchMayStandForAll) {
  const auto repeat = [](Problem& problem) {
    problem.inputs = problem.inputs.narrow(0, 0, 2).repeat({4, 1, 1, 1});
    problem.labels = problem.labels.narrow(0, 0, 2).repeat({4});
  };
  expect_equal_steps(
      [&](CurvatureOptimizer& optimizer, Problem& problem, int) {
        repeat(problem);
        for (int i = 0; i < 4; ++i) {
          const auto options = i == 2 ? BackwardOptions().represents(4) : BackwardOptions().measure(false);
          optimizer.backward(loss_of(problem, 2 * i, 2) / 4, options);
        }
      },
      [&](CurvatureOptimizer& optimizer, Problem& problem, int step) {
        repeat(problem);
        whole(optimizer, problem, step);
      });
}

TEST(Window, RanksThatAverageAreOneProcess) {
  for (const auto& way : ways()) {
    // The second rank's other loss does not reach the blocks, and every third step it has no loss at all.
    const auto rank_loss = [](Problem& problem, size_t rank, int step) -> at::Tensor {
      if (rank == 0) return loss_of(problem, 0, 4);
      return step % 3 == 2 ? at::Tensor() : loss_of(problem, 4, 4);
    };
    const auto expected = train(way, [&](CurvatureOptimizer& optimizer, Problem& problem, int step) {
      for (size_t rank = 0; rank < 2; ++rank) {
        if (const auto loss = rank_loss(problem, rank, step); loss.defined()) optimizer.backward(loss / 2);
      }
    });
    Ranks ranks(2), gradients(2);
    std::vector<Parameters> found(2);
    std::vector<Problem> problems{make_problem("GroupNorm"), make_problem("GroupNorm")};
    std::vector<std::vector<Problem>> batches(2);
    for (int t = 0; t < kSteps; ++t) {
      for (size_t rank = 0; rank < 2; ++rank) {
        next_batch(problems[rank], t);
        batches[rank].push_back(problems[rank]);
      }
    }
    int due_steps = 0;
    ranks.run([&](size_t rank) {
      const auto optimizer = way.make(problems[rank]);
      optimizer->set_all_reduce([&](const at::Tensor& tensor) { return ranks.average(tensor); });
      for (int t = 0; t < kSteps; ++t) {
        auto& problem = batches[rank][static_cast<size_t>(t)];
        optimizer->zero_grad();
        if (rank == 0 && optimizer->curvature_due()) ++due_steps;
        if (const auto loss = rank_loss(problem, rank, t); loss.defined()) optimizer->backward(loss);
        // As a reducer does it.
        std::vector<at::Tensor> flat;
        for (const auto& parameter : problem.model->parameters()) {
          flat.push_back(
              parameter.grad().defined() ? parameter.grad().flatten()
                                         : torch::zeros(parameter.numel(), torch::kFloat64));
        }
        auto mean = gradients.average(torch::cat(flat));
        for (const auto& parameter : problem.model->parameters()) {
          parameter.mutable_grad() = mean.narrow(0, 0, parameter.numel()).view(parameter.sizes()).clone();
          mean = mean.narrow(0, parameter.numel(), mean.numel() - parameter.numel());
        }
        optimizer->step();
      }
      found[rank] = problems[rank].model->parameters();
    });
    EXPECT_TRUE(ranks.agreed) << way.name;
    EXPECT_EQ(ranks.collectives, 2 * due_steps) << way.name << ": one collective a step";
    expect_same(found[0], expected, way.name);
    expect_same(found[1], found[0], way.name);
  }
}

TEST(Window, RanksMeetOnceForEachStepWhateverTheirLossesReach) {
  // Two branches; a rank's loss reaches one of them.
  for (const auto refresh : {Refresh::Cyclic, Refresh::All}) {
    Ranks ranks(2);
    ranks.run([&](size_t rank) {
      auto x = leaf({0.7, -0.4}), y = leaf({0.3, 0.2, 0.1});
      SGDPH optimizer(Parameters{x, y}, SGDPHOptions(0.1).rule(Rule::Paper).refresh(refresh));
      optimizer.set_all_reduce([&](at::Tensor& tensor) { tensor = ranks.average(tensor); });
      for (int t = 0; t < 12; ++t) {
        optimizer.zero_grad();
        if (t % 4 != 3) optimizer.backward(rank == 0 ? x.pow(4).sum() : y.pow(4).sum());
        if (t == 5)
          (rank == 0 ? x : y).mutable_grad().fill_(std::nan(""));  // rejected by all, as averaged gradients are
        optimizer.step();
      }
    });
    EXPECT_TRUE(ranks.agreed) << refresh;
    EXPECT_EQ(ranks.collectives, 24) << refresh;
  }
}

TEST_F(Quadratic, CurvatureFromTwoSourcesIsRefused) {
  SGDPH optimizer(parameters, SGDPHOptions(0.1).rule(Rule::Paper).shift_guard(false));
  optimizer.backward(loss());
  EXPECT_ERROR(optimizer.update_curvature(loss()), "update_curvature", "twice", "measure(false)");
  optimizer.zero_grad();
  optimizer.backward(loss(), BackwardOptions().measure(false));
  optimizer.update_curvature(loss());
  optimizer.backward(3 * loss());
  optimizer.step();
  expect(optimizer.last_step().blocks_refreshed.at(0).estimate, a.sum(1), "that of update_curvature");
  EXPECT_EQ(optimizer.last_step().products, 2);
}

TEST_F(Quadratic, AProbeSourceIsAskedOnceForABlockAndWindow) {
  SGDPH optimizer(parameters, SGDPHOptions(0.1).rule(Rule::Paper));
  int asked = 0;
  optimizer.set_probe_source([&](const at::Tensor& parameter) {
    ++asked;
    return torch::ones_like(parameter);
  });
  for (int i = 0; i < 3; ++i) optimizer.backward(loss());
  EXPECT_EQ(asked, 2);
  optimizer.step();
  EXPECT_EQ(optimizer.last_step().products, 6);
  train_step(optimizer, loss);
  EXPECT_EQ(asked, 4);
}

TEST_F(Quadratic, ClippingAndUnscalingBetweenBackwardAndStepKeepTheWindow) {
  SGDPH optimizer(parameters, SGDPHOptions(0.1).rule(Rule::Paper).shift_guard(false));
  const auto expect_measured = [&](const char* what) {
    optimizer.step();
    ASSERT_EQ(optimizer.last_step().blocks_refreshed.size(), 2) << what;
    expect(optimizer.last_step().blocks_refreshed[0].estimate, a.sum(1), what);
    optimizer.zero_grad();
  };
  optimizer.backward(loss());
  torch::nn::utils::clip_grad_norm_(parameters, 1e-3);
  expect_measured("clipped");
  optimizer.backward(loss());
  for (const auto& parameter : parameters) parameter.mutable_grad().mul_(0.5);
  expect_measured("in place");
  optimizer.backward(loss());
  for (const auto& parameter : parameters) parameter.mutable_grad() = parameter.grad() * 0.5;
  expect_measured("another tensor");
}

TEST(Window, AGradientCancelledOrZeroByItselfEndsNoWindow) {
  // The largest parameter's gradient is zero by nature, and is unscaled in place; then it is cancelled on purpose.
  auto large = torch::zeros({8, 8}, torch::dtype(torch::kFloat64).requires_grad(true));
  auto gain = torch::ones({4}, torch::dtype(torch::kFloat64).requires_grad(true));
  SGDPH optimizer(Parameters{large, gain}, SGDPHOptions(0.01).rule(Rule::Paper).shift_guard(false));
  const auto loss = [&] { return gain.pow(4).sum() + large.square().sum(); };
  optimizer.backward(loss());
  for (const auto& parameter : {large, gain}) parameter.mutable_grad().div_(2);
  optimizer.step();
  EXPECT_EQ(optimizer.last_step().blocks_refreshed.size(), 1);
  optimizer.zero_grad();
  optimizer.backward(loss());
  large.mutable_grad().reset();
  optimizer.step();
  EXPECT_EQ(optimizer.last_step().blocks_refreshed.size(), 1);
}

TEST(Window, BlocksThatAreAddedUpHaveAProductEach) {
  const auto options = torch::dtype(torch::kFloat64).requires_grad(true);
  auto a = torch::ones({4}, options), b = torch::ones({4}, options);
  SGDPH optimizer(
      Parameters{a, b},
      SGDPHOptions(0).rule(Rule::Paper).probe(Probe::Rademacher).refresh(Refresh::Joint).shift_guard(false));
  const auto sign_a = torch::tensor({1., 1., -1., -1.}, torch::kFloat64);
  const auto sign_b = torch::tensor({1., -1., 1., -1.}, torch::kFloat64);
  optimizer.set_probe_source([&](const torch::Tensor& block) { return block.is_same(a) ? sign_a : sign_b; });
  optimizer.backward((a + b).pow(2).sum());
  optimizer.step();
  // H = 2 for each pair of a channel, so that the product is 2 (z_a + z_b).
  const auto& blocks = optimizer.last_step().blocks_refreshed;
  ASSERT_EQ(blocks.size(), 2);
  EXPECT_TRUE(torch::equal(blocks[0].estimate, 2 * (sign_a + sign_b) * sign_a));
  EXPECT_TRUE(torch::equal(blocks[1].estimate, 2 * (sign_a + sign_b) * sign_b));
}

TEST_F(Quadratic, SumsOfLowPrecisionAreKeptInFloat) {
  auto gain = torch::ones({4}, torch::kBFloat16).requires_grad_(true);
  SGDPH optimizer(Parameters{gain}, SGDPHOptions(0).rule(Rule::Paper).shift_guard(false));
  optimizer.zero_grad();
  // 256 + 1 is 256 in bfloat16.
  optimizer.backward(128 * gain.square().sum());
  for (int i = 0; i < 3; ++i) optimizer.backward(0.5 * gain.square().sum());
  optimizer.step();
  const auto& estimate = optimizer.last_step().blocks_refreshed.at(0).estimate;
  EXPECT_EQ(estimate.scalar_type(), torch::kFloat);
  EXPECT_EQ(estimate.max().item<double>(), 259);
  std::stringstream archive;
  torch::save(optimizer, archive);
  SGDPH resumed(Parameters{gain}, SGDPHOptions(0).rule(Rule::Paper).shift_guard(false));
  torch::load(resumed, archive);
  EXPECT_TRUE(torch::equal(resumed.param_state(gain)->curvature(), optimizer.param_state(gain)->curvature()));
}

TEST_F(Quadratic, OptionsThatMakeNoSenseAreRefused) {
  SGDPH optimizer(parameters);
  for (const double scale : {0.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_ERROR(optimizer.backward(loss(), BackwardOptions().scale(scale)), "backward", "scale");
  }
  for (const double count : {0.0, -1.0, std::nan("")}) {
    EXPECT_ERROR(optimizer.backward(loss(), BackwardOptions().represents(count)), "represents");
  }
  EXPECT_ERROR(optimizer.backward(loss(), BackwardOptions().scale(2).scale_tensor(torch::ones({}))), "scale_tensor");
  EXPECT_ERROR(optimizer.update_curvature(loss(), BackwardOptions().measure(false)), "measure(false)");
  EXPECT_FALSE(x.grad().defined()) << "nothing changed";
}

TEST_F(Quadratic, WhatIsDueIsSeenWithoutChangingAnything) {
  const SGDPH optimizer(parameters);
  EXPECT_TRUE(optimizer.curvature_due());
  const SGDPH none(parameters, SGDPHOptions(0.1).second_order(false));
  EXPECT_FALSE(none.curvature_due());
}

TEST_F(Quadratic, ABlockUnfrozenLateIsFirstOrderUntilItIsMeasured) {
  auto late = leaf({1, 2});
  late.requires_grad_(false);
  SGDPH optimizer(Parameters{x, late, y}, SGDPHOptions(0.1).momentum(0).shift_guard(false));
  for (int t = 0; t < 6; ++t) train_step(optimizer, loss);
  late.requires_grad_(true);
  const auto before = late.detach().clone();
  const auto cost = [&] { return loss() + 0.5 * late.square().sum(); };
  train_step(optimizer, cost);
  EXPECT_EQ(optimizer.param_state(late)->refreshes(), 0) << "measured at once: the test sees nothing";
  expect(late, before * 0.9, "plain gradient descent");
  train_step(optimizer, cost);
  EXPECT_EQ(optimizer.param_state(late)->refreshes(), 1);
}

}  // namespace
}  // namespace sgdph::test::window_test
