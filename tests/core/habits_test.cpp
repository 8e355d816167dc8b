// Habits of those who write training loops: each ends as it would with LibTorch's SGD, or in a sentence, never silently
// wrong.

#include "support/backwards.h"
#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace sgdph::test::habits_test {
namespace {

constexpr double kTolerance = 1e-14;

using Loop = std::function<void(SGDPH& optimizer, Problem& problem)>;

SGDPHOptions all_blocks() {
  return SGDPHOptions(0.05).refresh(Refresh::All);
}

Parameters trained(const Loop& step, const SGDPHOptions& options = all_blocks(), int steps = 8) {
  auto problem = make_problem("GroupNorm");
  SGDPH optimizer(*problem.model, options);
  for (int t = 0; t < steps; ++t) {
    step(optimizer, problem);
    EXPECT_TRUE(optimizer.last_step().applied);
  }
  return problem.model->parameters();
}

void expect_same(const Parameters& found, const Parameters& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_LE((found[i] - expected[i]).abs().max().item<double>(), kTolerance) << "parameter " << i;
  }
}

void plain(SGDPH& optimizer, Problem& problem) {
  optimizer.zero_grad();
  optimizer.backward(problem.loss());
  optimizer.step();
}

TEST(Habit, AClosureThatIsAskedSeveralTimesCountsOnce) {
  const auto found = trained([](SGDPH& optimizer, Problem& problem) {
    // As a line search does it, by itself.
    const auto closure = [&] {
      optimizer.zero_grad();
      auto loss = problem.loss();
      optimizer.backward(loss);
      return loss;
    };
    closure();
    closure();
    optimizer.step(closure);
  });
  expect_same(found, trained(plain));
}

TEST(Habit, ALossTakenTwiceIsTwiceTheLoss) {
  const auto found = trained([](SGDPH& optimizer, Problem& problem) {
    optimizer.zero_grad();
    const auto loss = problem.loss();
    optimizer.backward(loss, /*retain_graph=*/true);
    optimizer.backward(loss);
    optimizer.step();
  });
  expect_same(found, trained([](SGDPH& optimizer, Problem& problem) {
                optimizer.zero_grad();
                optimizer.backward(2 * problem.loss());
                optimizer.step();
              }));
}

TEST(Habit, EvaluationBetweenBackwardAndStepChangesNothing) {
  const auto found = trained([](SGDPH& optimizer, Problem& problem) {
    optimizer.zero_grad();
    optimizer.backward(problem.loss());
    {
      torch::NoGradGuard no_grad;
      problem.model->eval();
      problem.loss();
      problem.model->train();
    }
    EXPECT_GT(problem.loss().item<double>(), 0);
    optimizer.step();
  });
  expect_same(found, trained(plain));
}

TEST(Habit, BackwardUnderNoGradIsBackward) {
  const auto found = trained([](SGDPH& optimizer, Problem& problem) {
    optimizer.zero_grad();
    const auto loss = problem.loss();
    torch::NoGradGuard no_grad;
    optimizer.backward(loss);
    optimizer.step();
  });
  expect_same(found, trained(plain));
}

TEST(Habit, APlainPassForTheInputAndThenZeroGradLeavesNoTrace) {
  // Adversarial training: the gradient of the input first, by loss.backward().
  const auto attack = [](Problem& problem) {
    auto inputs = problem.inputs.clone().requires_grad_(true);
    torch::nn::functional::cross_entropy(problem.model->forward(inputs), problem.labels).backward();
    return problem.inputs + 0.01 * inputs.grad().sign();
  };
  const auto loss_at = [](Problem& problem, const at::Tensor& inputs) {
    return torch::nn::functional::cross_entropy(problem.model->forward(inputs), problem.labels);
  };
  const auto expected = trained([&](SGDPH& optimizer, Problem& problem) {
    auto inputs = problem.inputs.clone().requires_grad_(true);
    const auto gradient = torch::autograd::grad({loss_at(problem, inputs)}, {inputs})[0];
    optimizer.zero_grad();
    optimizer.backward(loss_at(problem, problem.inputs + 0.01 * gradient.sign()));
    optimizer.step();
  });
  for (const bool to_none : {false, true}) {
    expect_same(
        trained([&](SGDPH& optimizer, Problem& problem) {
          const auto inputs = attack(problem);
          problem.model->zero_grad(to_none);
          optimizer.backward(loss_at(problem, inputs));
          optimizer.step();
          problem.model->zero_grad(to_none);
        }),
        expected);
  }
}

TEST(Habit, WeightsThatAreShiftedAndPutBackAreThoseOfTheStep) {
  // Sharpness-aware: gradients at a place beside the weights, the step from the weights.
  const auto shift = [](Problem& problem, double sign) {
    torch::NoGradGuard no_grad;
    for (auto& parameter : problem.model->parameters()) parameter.add_(sign * 0.01);
  };
  const auto once = [&](bool extra) {
    return trained([&, extra](SGDPH& optimizer, Problem& problem) {
      optimizer.zero_grad();
      if (extra) {
        optimizer.backward(problem.loss());
        optimizer.zero_grad();
      }
      shift(problem, 1);
      optimizer.backward(problem.loss());
      shift(problem, -1);
      optimizer.step();
    });
  };
  expect_same(once(true), once(false));
}

TEST(Habit, OptimizersInAVectorThatGrowsTrainOn) {
  const auto expected = trained(plain);
  std::vector<Problem> problems;
  std::vector<SGDPH> optimizers;
  for (int i = 0; i < 5; ++i) {
    problems.push_back(make_problem("GroupNorm"));
    optimizers.emplace_back(*problems.back().model, all_blocks());
    // In the middle of a window.
    for (size_t k = 0; k < optimizers.size(); ++k) {
      optimizers[k].zero_grad();
      optimizers[k].backward(problems[k].loss());
    }
    auto moved = std::move(optimizers);
    optimizers = std::vector<SGDPH>();
    for (auto& optimizer : moved) optimizers.push_back(std::move(optimizer));
    for (auto& optimizer : optimizers) optimizer.step();
  }
  for (int i = 0; i < 3; ++i) plain(optimizers[0], problems[0]);
  expect_same(problems[0].model->parameters(), expected);
}

TEST(Habit, AHookThatThrowsLeavesAnOptimizerThatGoesOn) {
  auto problem = make_problem("GroupNorm");
  SGDPH optimizer(*problem.model, all_blocks());
  bool fails = false;
  problem.model->parameters()[0].register_hook([&fails](const at::Tensor& gradient) {
    if (fails) throw std::runtime_error("the hook fails");
    return gradient;
  });
  for (int t = 0; t < 8; ++t) {
    fails = true;
    EXPECT_THROW(optimizer.backward(problem.loss()), std::exception);
    fails = false;
    plain(optimizer, problem);
  }
  expect_same(problem.model->parameters(), trained(plain));
}

TEST(Habit, ABatchWithoutImagesHasNoEffect) {
  auto problem = make_problem("GroupNorm");
  SGDPH optimizer(*problem.model, all_blocks().momentum(0));
  plain(optimizer, problem);
  const auto inputs = problem.inputs, labels = problem.labels;
  problem.inputs = inputs.narrow(0, 0, 0);
  problem.labels = labels.narrow(0, 0, 0);
  Parameters before;
  for (const auto& parameter : problem.model->parameters()) before.push_back(parameter.detach().clone());
  // The mean over nothing is not a number, but its gradient is zero.
  optimizer.zero_grad();
  optimizer.backward(problem.loss());
  optimizer.step();
  // The sum over nothing is zero, and so is its gradient.
  optimizer.zero_grad();
  optimizer.backward(problem.model->forward(problem.inputs).sum());
  optimizer.step();
  EXPECT_TRUE(optimizer.last_step().applied);
  expect_same(problem.model->parameters(), before);
  problem.inputs = inputs;
  problem.labels = labels;
  plain(optimizer, problem);
  EXPECT_TRUE(optimizer.last_step().applied);
}

TEST(Habit, BlocksOfOneChannelAndOfNoneTrain) {
  for (const auto probe : {Probe::Ones, Probe::Rademacher, Probe::Hadamard}) {
    auto one = leaf({2}), none = leaf({}), last = leaf({1, 1});
    SGDPH optimizer(Parameters{none, one, last}, all_blocks().lr(1).lr_so(0.5).momentum(0).probe(probe));
    for (int t = 0; t < 30; ++t) {
      train_step(
          optimizer, [&] { return one.square().sum() + one.pow(4).sum() + none.sum() + 0.1 * last.square().sum(); });
      EXPECT_TRUE(optimizer.last_step().applied);
    }
    EXPECT_LT(std::abs(one.item<double>()), 1e-2) << probe;
    EXPECT_GT(optimizer.param_state(one)->refreshes(), 5) << probe;
  }
}

TEST(Habit, ATiedParameterHasTheCurvatureOfBothItsUses) {
  auto gain = leaf({0.5, -1.0}), last = leaf({1});
  SGDPH optimizer(Parameters{gain, last}, SGDPHOptions(0.01).shift_guard(false));
  const auto loss = [&] { return gain.pow(4).sum() + (gain * gain).sum().square() + last.square().sum(); };
  const auto hessian = brute_force_hessian(loss(), {gain});
  train_step(optimizer, loss);
  EXPECT_TRUE(torch::allclose(optimizer.last_step().blocks_refreshed.at(0).estimate, hessian.sum(1)));
}

TEST(Habit, ALayerUsedTwiceIsOneBlockWithTheCurvatureOfBothUses) {
  torch::manual_seed(3);
  torch::nn::GroupNorm norm(1, 6);
  torch::nn::Conv2d conv(6, 6, 3);
  torch::nn::Sequential model(conv, norm, torch::nn::SiLU(), norm, torch::nn::SiLU());
  model->to(torch::kFloat64);
  SGDPH optimizer(model, all_blocks().shift_guard(false));
  ASSERT_EQ(optimizer.partition().blocks(), 3) << optimizer.partition();
  const auto inputs = torch::randn({3, 6, 5, 5}, torch::kFloat64);
  const auto loss = [&] { return model->forward(inputs).pow(2).mean(); };
  const auto hessian = brute_force_hessian(loss(), {norm->weight});
  train_step(optimizer, loss);
  for (const auto& block : optimizer.last_step().blocks_refreshed) {
    if (!block.parameter.is_same(norm->weight)) continue;
    EXPECT_TRUE(torch::allclose(block.estimate, hessian.sum(1)));
  }
}

TEST(Habit, ACheckpointedLayerTrainsWithoutCurvatureAndWithoutAMark) {
  torch::manual_seed(3);
  torch::nn::Conv2d conv(2, 6, 3);
  torch::nn::GroupNorm hidden(2, 6), open(3, 6);
  torch::nn::Sequential model(conv, hidden, open);
  model->to(torch::kFloat64);
  SGDPH optimizer(model, SGDPHOptions(0.01));
  const auto inputs = torch::randn({4, 2, 5, 5}, torch::kFloat64);
  const Part part = [&](const at::Tensor& x) { return hidden->forward(x); };
  const auto loss = [&] {
    const auto seen = checkpointed(part, conv->forward(inputs));
    return (open->forward(seen.sigmoid()) - 1).pow(4).mean();
  };
  const auto before = hidden->weight.detach().clone();
  const double first = train_step(optimizer, loss);
  double last = first;
  for (int t = 0; t < 30; ++t) last = train_step(optimizer, loss);
  EXPECT_LT(last, first);
  EXPECT_FALSE(torch::equal(hidden->weight, before));
  EXPECT_EQ(optimizer.param_state(hidden->weight)->refreshes(), 0);
  EXPECT_FALSE(optimizer.param_state(hidden->weight)->shift_invariant());
  EXPECT_GT(optimizer.param_state(open->weight)->refreshes(), 0);
}

TEST(Habit, AverageWeightsThatAreSwappedInForATestChangeNothing) {
  const auto found = trained([](SGDPH& optimizer, Problem& problem) {
    plain(optimizer, problem);
    torch::NoGradGuard no_grad;
    auto parameters = problem.model->parameters();
    std::vector<at::Tensor> kept;
    for (auto& parameter : parameters) {
      kept.push_back(parameter.data());
      parameter.set_data(torch::zeros_like(parameter));
    }
    problem.loss();
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].set_data(kept[i]);
  });
  expect_same(found, trained(plain));
}

TEST(Habit, AModelThatChangesItsTypeBetweenBackwardAndStepTrainsOn) {
  auto problem = make_problem("GroupNorm", torch::kFloat32);
  SGDPH optimizer(*problem.model, all_blocks());
  plain(optimizer, problem);
  optimizer.zero_grad();
  optimizer.backward(problem.loss());
  problem.model->to(torch::kFloat64);
  problem.inputs = problem.inputs.to(torch::kFloat64);
  optimizer.step();
  EXPECT_TRUE(optimizer.last_step().applied);
  for (int t = 0; t < 4; ++t) plain(optimizer, problem);
  for (const auto& entry : optimizer.partition().entries) {
    const auto* state = optimizer.param_state(entry.parameter);
    EXPECT_EQ(state->momentum_buffer().scalar_type(), torch::kFloat64) << entry.name;
    if (!entry.second_order) continue;
    EXPECT_EQ(state->curvature().scalar_type(), torch::kFloat64) << entry.name;
  }
}

TEST(Habit, AStepWithoutABackwardMovesNothingNew) {
  auto problem = make_problem("GroupNorm");
  SGDPH optimizer(*problem.model, all_blocks());
  optimizer.step();
  EXPECT_TRUE(optimizer.last_step().applied);
  EXPECT_EQ(optimizer.last_step().products, 0);
  plain(optimizer, problem);
  EXPECT_GT(optimizer.last_step().blocks_refreshed.size(), 0);
}

TEST(Habit, SparseEmbeddingsAreRefusedInASentence) {
  torch::nn::Embedding embedding(torch::nn::EmbeddingOptions(5, 3).sparse(true));
  torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({3}));
  torch::nn::Sequential model(embedding, norm);
  SGDPH optimizer(model, all_blocks());
  AdaHessian whole(model->parameters());
  const auto loss = [&] { return model->forward(torch::tensor({0, 3})).pow(4).mean(); };
  EXPECT_ERROR((optimizer.backward(loss()), optimizer.step()), "sparse");
  optimizer.zero_grad();
  EXPECT_ERROR(whole.backward(loss()), "sparse(false)");
}

TEST(Habit, TwoOptimizersThatBothMeasureShareALoss) {
  auto problem = make_problem("GroupNorm");
  Parameters blocks, rest;
  for (const auto& parameter : problem.model->parameters()) (parameter.dim() == 1 ? blocks : rest).push_back(parameter);
  SGDPH second(blocks, all_blocks());
  AdaHessian first(rest, AdaHessianOptions(0.01));
  const double start = problem.loss().item<double>();
  for (int t = 0; t < 10; ++t) {
    second.zero_grad();
    first.zero_grad();
    const auto loss = problem.loss();
    second.backward(loss, BackwardOptions().inputs(blocks).retain_graph(true));
    first.backward(loss, BackwardOptions().inputs(rest));
    second.step();
    first.step();
    EXPECT_GT(second.last_step().blocks_refreshed.size(), 0);
  }
  EXPECT_LT(problem.loss().item<double>(), start);
}

TEST(Habit, AGradientPenaltyIsALossLikeAnyOther) {
  auto problem = make_problem("GroupNorm");
  SGDPH optimizer(*problem.model, all_blocks());
  const auto loss = [&] {
    auto inputs = problem.inputs.clone().requires_grad_(true);
    const auto scores = problem.model->forward(inputs);
    const auto slope =
        torch::autograd::grad({scores.sum()}, {inputs}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
    return torch::nn::functional::cross_entropy(scores, problem.labels) +
           0.1 * (slope.square().sum({1, 2, 3}) - 1).square().mean();
  };
  const auto& block = optimizer.partition().entries;
  const auto found = std::find_if(block.begin(), block.end(), [](const auto& entry) { return entry.second_order; });
  ASSERT_NE(found, block.end());
  const auto hessian = brute_force_hessian(loss(), {found->parameter});
  train_step(optimizer, loss);
  EXPECT_TRUE(torch::allclose(optimizer.last_step().blocks_refreshed.at(0).estimate, hessian.sum(1), 1e-9, 1e-12));
}

TEST(Habit, APendingWindowIsForgottenWhenStatesAreLoadedOrGroupsAdded) {
  auto problem = make_problem("GroupNorm");
  SGDPH optimizer(*problem.model, all_blocks());
  std::stringstream archive;
  torch::save(optimizer, archive);
  optimizer.backward(problem.loss());
  torch::load(optimizer, archive);
  optimizer.step();
  EXPECT_EQ(optimizer.last_step().blocks_refreshed.size(), 0);
  optimizer.zero_grad();
  optimizer.backward(problem.loss());
  optimizer.add_param_group(group({leaf({1, 2})}, all_blocks()));
  optimizer.step();
  EXPECT_EQ(optimizer.last_step().blocks_refreshed.size(), 0);
  plain(optimizer, problem);
  EXPECT_GT(optimizer.last_step().blocks_refreshed.size(), 0);
}

TEST(Habit, AParameterFrozenWithinAWindowIsLeftOut) {
  for (const bool update : {false, true}) {
    auto x = leaf({1, 2}), y = leaf({3, 4});
    const Parameters both{x, y};
    std::vector<std::unique_ptr<CurvatureOptimizer>> optimizers;
    optimizers.push_back(std::make_unique<SGDPH>(both, all_blocks().rule(Rule::Paper).shift_guard(false)));
    optimizers.push_back(std::make_unique<AdaHessian>(both, AdaHessianOptions(0.01)));
    for (const auto& optimizer : optimizers) {
      const auto loss = [&] { return x.pow(4).sum() + y.pow(4).sum() + (x * y).sum(); };
      const auto call = [&] {
        if (update) {
          optimizer->update_curvature(loss());
          loss().backward();
        } else {
          optimizer->backward(loss());
        }
      };
      optimizer->zero_grad();
      call();
      x.requires_grad_(false);
      call();
      const auto frozen = x.detach().clone(), before = y.detach().clone();
      optimizer->step();
      EXPECT_TRUE(torch::equal(x, frozen));
      EXPECT_FALSE(torch::equal(y, before));
      for (const auto& block : optimizer->last_step().blocks_refreshed) EXPECT_TRUE(block.parameter.is_same(y));
      x.requires_grad_(true);
    }
  }
}

TEST(Habit, HeadsTrainedInTurnAreAllMeasured) {
  torch::manual_seed(5);
  torch::nn::LayerNorm a(torch::nn::LayerNormOptions({6})), b(torch::nn::LayerNormOptions({6}));
  torch::nn::Linear body(4, 6), head_a(6, 3), head_b(6, 3);
  torch::nn::Sequential model(body, a, head_a, b, head_b);
  model->to(torch::kFloat64);
  const auto inputs = torch::randn({10, 4}, torch::kFloat64);
  const auto labels = torch::randint(3, {10}, torch::kLong);
  const auto loss = [&](bool second) {
    const auto x = torch::tanh(body(inputs));
    return torch::nn::functional::cross_entropy(second ? head_b(torch::tanh(b(x))) : head_a(torch::tanh(a(x))), labels);
  };
  SGDPH optimizer(model, SGDPHOptions(0.02));
  for (int t = 0; t < 40; ++t) train_step(optimizer, [&] { return loss(t % 2 == 1); });
  for (const auto& parameter : {a->weight, a->bias, b->weight, b->bias}) {
    ASSERT_NE(optimizer.param_state(parameter), nullptr);
    EXPECT_GE(optimizer.param_state(parameter)->refreshes(), 5) << optimizer.partition();
  }
}

TEST(Habit, ABlockThatNoLossReachesIsNamed) {
  auto x = leaf({1, 2}), never = leaf({3, 4});
  SGDPH optimizer(Parameters{x, never}, all_blocks().rule(Rule::Paper).refresh(Refresh::Cyclic).shift_guard(false));
  testing::internal::CaptureStderr();
  for (int t = 0; t < 200; ++t) train_step(optimizer, [&] { return x.pow(4).sum() + x.square().sum(); });
  const auto notice = testing::internal::GetCapturedStderr();
  const auto said = notice.find("no loss has reached group 0 parameter 1");
  EXPECT_NE(said, std::string::npos) << notice;
  EXPECT_EQ(notice.find("no loss has reached", said + 1), std::string::npos) << "once: " << notice;
  EXPECT_NE(optimizer.partition().entries[1].reason.find("no loss has reached it"), std::string::npos);
  EXPECT_EQ(optimizer.partition().entries[0].reason.find("no loss has reached it"), std::string::npos);
}

TEST(Habit, ACriticThroughWhatAGeneratorMadeLeavesItsGraph) {
  torch::manual_seed(5);
  torch::nn::Linear generator(3, 4);
  torch::nn::Sequential critic(torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})), torch::nn::Linear(4, 1));
  const auto made = torch::tanh(generator(torch::randn({5, 3})));
  SGDPH first(critic, SGDPHOptions(0.01)), second(generator, SGDPHOptions(0.01));
  for (const bool measure : {true, false}) {
    first.zero_grad();
    first.backward(
        critic->forward(made).square().mean(), BackwardOptions().inputs(critic->parameters()).measure(measure));
    first.step();
  }
  second.backward(critic->forward(made).mean(), BackwardOptions().inputs(generator->parameters()));
  EXPECT_TRUE(generator->weight.grad().defined());
  EXPECT_ERROR(made.sum().backward(), "second time");
}

TEST(Habit, AHeadAddedLaterIsClassifiedAsAModule) {
  torch::nn::Sequential body(torch::nn::Linear(4, 4), torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})));
  SGDPH optimizer(body, SGDPHOptions(0.1));
  torch::nn::Linear plain(4, 2);
  optimizer.add_param_group(group(plain->parameters(), SGDPHOptions(0.1)));
  torch::nn::Sequential head(torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})), torch::nn::Linear(4, 2));
  optimizer.add_module("head", *head, SGDPHOptions(0.2));
  const auto entries = optimizer.partition().entries;
  ASSERT_EQ(entries.size(), 10);
  EXPECT_FALSE(entries[5].second_order) << entries[5].reason;
  EXPECT_NE(entries[5].reason.find("added without a module"), std::string::npos) << entries[5].reason;
  EXPECT_EQ(entries[6].name, "head.0.weight");
  EXPECT_TRUE(entries[6].second_order && entries[7].second_order);
  EXPECT_FALSE(entries[9].second_order) << "a linear bias";
  EXPECT_EQ(entries[6].group, 2);
  EXPECT_ERROR(optimizer.add_module("again", *head, SGDPHOptions(0.2)), "add_module", "again");
  EXPECT_ERROR(
      optimizer.add_module(
          "head", *torch::nn::LayerNorm(torch::nn::LayerNormOptions({4})), SGDPHOptions(0.2).refresh(Refresh::All)),
      "refresh");
  EXPECT_EQ(optimizer.partition().entries.size(), 10) << "and nothing has changed";
}

TEST(Habit, HalfAWindowIsNotMeasured) {
  for (const bool loads : {true, false}) {
    auto problem = make_problem("GroupNorm");
    std::vector<std::unique_ptr<CurvatureOptimizer>> optimizers;
    optimizers.push_back(std::make_unique<SGDPH>(*problem.model, SGDPHOptions(0.05)));
    optimizers.push_back(std::make_unique<AdaHessian>(problem.model->parameters(), AdaHessianOptions(0.01)));
    for (const auto& optimizer : optimizers) {
      const auto one_step = [&] {
        optimizer->zero_grad();
        optimizer->backward(problem.loss());
        optimizer->step();
      };
      one_step();
      std::stringstream archive;
      torch::save(*optimizer, archive);
      optimizer->zero_grad();
      optimizer->backward(problem.loss() / 2);
      if (loads) {
        torch::load(*optimizer, archive);
      } else {
        optimizer->add_param_group(torch::optim::OptimizerParamGroup(Parameters{leaf({1, 2})}));
      }
      optimizer->backward(problem.loss() / 2);
      optimizer->step();
      EXPECT_TRUE(optimizer->last_step().applied);
      EXPECT_EQ(optimizer->last_step().products, 0) << "of half the loss";
      one_step();
      EXPECT_GT(optimizer->last_step().products, 0);
    }
  }
}

}  // namespace
}  // namespace sgdph::test::habits_test
