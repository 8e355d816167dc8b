// `optimizer.backward(loss)` is `loss.backward()`, and curvature beside it.

#include "detail/compat.h"
#include "support/networks.h"
#include "support/quadratic.h"

namespace sgdph::test::backward_test {
namespace {

std::unique_ptr<CurvatureOptimizer> make(const std::string& name, Problem& problem) {
  if (name == "AdaHessian") {
    return std::make_unique<AdaHessian>(problem.model->parameters(), AdaHessianOptions(0.01));
  }
  auto options = SGDPHOptions(0.05);
  if (name == "All") options.refresh(Refresh::All);
  if (name == "Joint") options.probe(Probe::Rademacher).refresh(Refresh::Joint);
  if (name == "rarely") options.refresh_every(1000);  // due at the first step alone
  return std::make_unique<SGDPH>(*problem.model, options);
}
const std::vector<std::string> kKinds{"Cyclic", "All", "Joint", "rarely", "AdaHessian"};

TEST(Backward, GradientsAreThoseOfThePlainPassBitForBit) {
  for (const auto& kind : kKinds) {
    auto ours = make_problem("BatchNorm"), plain = make_problem("BatchNorm");
    const auto optimizer = make(kind, ours);
    for (int call = 0; call < 3; ++call) {
      optimizer->backward(ours.loss());
      plain.loss().backward();
      for (size_t i = 0; i < plain.model->parameters().size(); ++i) {
        const auto found = ours.model->parameters()[i].grad();
        EXPECT_TRUE(torch::equal(found, plain.model->parameters()[i].grad())) << kind << ", parameter " << i;
        EXPECT_FALSE(found.requires_grad()) << "no graph";
        EXPECT_TRUE(found.grad_fn() == nullptr);
      }
    }
  }
}

TEST(Backward, HooksOnParametersFireAsOftenAndTheirWordHolds) {
  for (const auto& kind : kKinds) {
    auto problem = make_problem("BatchNorm");
    const auto optimizer = make(kind, problem);
    int calls = 0;
    bool graphs = false;
    for (auto& parameter : problem.model->parameters()) {
      parameter.register_hook([&](const at::Tensor& gradient) {
        ++calls;
        graphs = graphs || gradient.requires_grad();
        return gradient * 0;
      });
    }
    const auto count = static_cast<int>(problem.model->parameters().size());
    for (int step = 1; step <= 3; ++step) {
      optimizer->zero_grad();
      optimizer->backward(problem.loss());
      EXPECT_EQ(calls, step * count) << kind;
      for (const auto& parameter : problem.model->parameters()) {
        EXPECT_EQ(parameter.grad().abs().max().item<double>(), 0) << kind;
      }
      optimizer->step();
    }
    EXPECT_FALSE(graphs) << kind << ": hooks see plain gradients";
  }
}

TEST_F(Quadratic, AHookThatScalesAGradientLeavesTheCurvature) {
  SGDPH optimizer(parameters, SGDPHOptions(0).rule(Rule::Paper).shift_guard(false));
  x.register_hook([](const at::Tensor& gradient) { return gradient * 0.5; });
  y.register_hook([](const at::Tensor& gradient) {
    gradient.mul_(0.5);  // in place
    return gradient;
  });
  train_step(optimizer, loss);
  expect(x.grad(), 0.5 * a.mv(x.detach()), "scaled");
  expect(y.grad(), 0.5 * y.detach(), "scaled");
  expect(optimizer.last_step().blocks_refreshed.at(0).estimate, a.sum(1), "as clip_grad_norm_ leaves it");
  expect(optimizer.last_step().blocks_refreshed.at(1).estimate, torch::ones({2}, torch::kFloat64), "likewise");
}

/// Runs the layers one by one; the activations between them.
Parameters run_layers(Problem& problem, const std::function<void(at::Tensor&)>& each) {
  Parameters activations{problem.inputs};
  for (auto& layer : *problem.model) {
    activations.push_back(layer.forward(activations.back()));
    each(activations.back());
  }
  return activations;
}

at::Tensor loss_at(const Parameters& activations, const Problem& problem) {
  return torch::nn::functional::cross_entropy(activations.back(), problem.labels);
}

TEST(Backward, HooksOnActivationsFireAsOften) {
  for (const auto& kind : kKinds) {
    auto problem = make_problem("BatchNorm");
    const auto optimizer = make(kind, problem);
    std::vector<int> calls;
    const auto loss = [&] {
      calls.clear();
      const auto activations = run_layers(problem, [&](at::Tensor& activation) {
        const auto i = calls.size();
        calls.push_back(0);
        activation.register_hook([&calls, i](const at::Tensor& gradient) {
          ++calls[i];
          return gradient;
        });
      });
      return loss_at(activations, problem);
    };
    for (int step = 0; step < 3; ++step) {
      optimizer->zero_grad();
      optimizer->backward(loss());
      for (size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], 1) << kind << ", layer " << i;
      optimizer->step();
    }
    // The graph's way round, measured by the step itself.
    optimizer->zero_grad();
    loss().backward({}, {}, /*create_graph=*/true);
    optimizer->step();
    for (size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], 1) << kind << ", layer " << i;
  }
}

TEST(Backward, RetainedGradientsOfActivationsAreThoseOfThePlainPass) {
  for (const auto& kind : kKinds) {
    auto ours = make_problem("BatchNorm"), plain = make_problem("BatchNorm");
    const auto optimizer = make(kind, ours);
    const auto retain = [](at::Tensor& activation) { activation.retain_grad(); };
    const auto expected = run_layers(plain, retain), found = run_layers(ours, retain);
    loss_at(expected, plain).backward();
    const auto loss = loss_at(found, ours);
    optimizer->update_curvature(loss);
    for (size_t i = 1; i < found.size(); ++i) EXPECT_FALSE(found[i].grad().defined()) << kind << ": it adds nothing";
    optimizer->discard();
    optimizer->backward(loss, /*retain_graph=*/true);
    for (size_t i = 1; i < found.size(); ++i) {
      EXPECT_TRUE(torch::equal(found[i].grad(), expected[i].grad())) << kind << ", layer " << i;
      EXPECT_FALSE(found[i].grad().requires_grad()) << kind << ", layer " << i;
    }
    // What was put between them and the pass is gone.
    loss.backward();
    for (size_t i = 1; i < found.size(); ++i) {
      EXPECT_TRUE(torch::equal(found[i].grad(), 2 * expected[i].grad())) << kind << ", layer " << i;
    }
  }
}

/// Named as LibTorch's own, with which it is not to be mistaken.
void retain_grad_scaled(const at::Tensor& activation, double factor) {
  activation.register_hook([factor](const at::Tensor& gradient) { return gradient * factor; });
}

at::Tensor make_leaf(int64_t size) {
  return torch::ones({size}, torch::kFloat64).requires_grad_(true);
}

TEST(Backward, AHookIsNotTakenForAnothersByItsName) {
  auto x = make_leaf(3), y = make_leaf(4);
  SGDPH optimizer(Parameters{x, y}, SGDPHOptions(0).refresh(Refresh::All).shift_guard(false).rule(Rule::Paper));
  const auto activation = 2 * x;
  retain_grad_scaled(activation, 3);
  optimizer.backward(activation.pow(3).sum() + y.pow(2).sum());
  optimizer.step();
  EXPECT_TRUE(torch::equal(x.grad(), torch::full({3}, 3 * 24., torch::kFloat64))) << "of 8 x^3, three times";
  EXPECT_TRUE(
      torch::equal(optimizer.last_step().blocks_refreshed.at(0).estimate, torch::full({3}, 3 * 48., torch::kFloat64)));
}

TEST(Backward, WhatAHookOnAnActivationKeepsHasNoGraphInTheEnd) {
  for (const auto& kind : kKinds) {
    auto problem = make_problem("BatchNorm");
    const auto optimizer = make(kind, problem);
    for (const bool curvature_alone : {false, true}) {
      Parameters kept, plain;
      std::vector<std::weak_ptr<void>> graphs;
      {
        const auto keep = [&](at::Tensor& activation) {
          // As hooks that record activations do: what is kept is owned by the hook, and so by the graph.
          const auto place = std::make_shared<at::Tensor>();
          graphs.emplace_back(place);
          activation.register_hook([place, &kept](const at::Tensor& gradient) {
            *place = gradient;
            kept.push_back(gradient);
          });
        };
        const auto loss = loss_at(run_layers(problem, keep), problem);
        if (curvature_alone) {
          optimizer->update_curvature(loss);
        } else {
          optimizer->backward(loss);
        }
        const auto again = loss_at(
            run_layers(
                problem,
                [&](at::Tensor& activation) {
                  activation.register_hook([&plain](const at::Tensor& gradient) { plain.push_back(gradient); });
                }),
            problem);
        again.backward();
      }
      // A pass for curvature alone ends where blocks do.
      EXPECT_GE(kept.size(), curvature_alone ? 1 : plain.size()) << kind;
      for (size_t i = 0; i < kept.size(); ++i) {
        EXPECT_FALSE(kept[i].requires_grad()) << kind;
        EXPECT_TRUE(torch::equal(kept[i], plain.at(i))) << kind;
      }
      kept.clear();
      for (const auto& graph : graphs) EXPECT_TRUE(graph.expired()) << kind << ": it keeps itself alive";
      optimizer->discard();
      optimizer->zero_grad();
    }
  }
}

TEST(Backward, WhatIsKeptHasNoGraphAlsoWhenAHookThrows) {
  auto x = make_leaf(3), y = make_leaf(4);
  SGDPH optimizer(Parameters{x, y}, SGDPHOptions(0.1).refresh(Refresh::All));
  at::Tensor kept;
  const auto first = x.pow(3), second = first.pow(2);
  second.register_hook([&kept](const at::Tensor& gradient) { kept = gradient; });
  first.register_hook([](const at::Tensor&) -> void { TORCH_CHECK(false, "the hook failed"); });
  EXPECT_ERROR(optimizer.backward(second.pow(2).sum()), "the hook failed");
  ASSERT_TRUE(kept.defined());
  EXPECT_FALSE(kept.requires_grad());
}

TEST(Backward, HooksThatHandOnATensorOfTheUsersLeaveItAsItIs) {
  auto x = make_leaf(3), y = make_leaf(3);
  SGDPH optimizer(Parameters{x, y}, SGDPHOptions(0).refresh(Refresh::All));
  const auto activation = x.pow(3);
  activation.register_hook([&y](const at::Tensor&) { return y; });
  optimizer.backward(activation.pow(2).sum() + y.pow(3).sum());
  EXPECT_TRUE(y.requires_grad());
  EXPECT_TRUE(torch::equal(x.grad(), 3 * y.detach()));
}

TEST(Backward, AHookThatIsGivenAViewLeavesTheCurvature) {
  auto x = make_leaf(3), y = make_leaf(4);
  const auto loss = [&](bool hooked) {
    const auto activation = x.pow(3);
    if (hooked) activation.register_hook([](const at::Tensor& gradient) { EXPECT_TRUE(gradient.defined()); });
    return activation.expand({2, 3}).pow(2).sum() + activation.reshape({3, 1}).pow(2).sum() + y.pow(2).sum();
  };
  Parameters estimates;
  for (const bool hooked : {false, true}) {
    SGDPH optimizer(Parameters{x, y}, SGDPHOptions(0).refresh(Refresh::All).shift_guard(false).rule(Rule::Paper));
    train_step(optimizer, [&] { return loss(hooked); });
    estimates.push_back(optimizer.last_step().blocks_refreshed.at(0).estimate);
  }
  EXPECT_TRUE(torch::equal(estimates[0], estimates[1]));
  EXPECT_TRUE(torch::allclose(estimates[0], torch::full({3}, 90., torch::kFloat64))) << "of 3 x^6";
}

TEST(Backward, AnActivationAmongTheInputsGetsItsPlainGradient) {
  auto x = make_leaf(3), y = make_leaf(4);
  SGDPH optimizer(Parameters{x, y}, SGDPHOptions(0.1).refresh(Refresh::All));
  const auto activation = x.pow(2);
  const auto loss = activation.pow(3).sum() + y.pow(2).sum();
  optimizer.backward(loss, BackwardOptions().inputs({activation, y}));
  EXPECT_TRUE(torch::equal(activation.grad(), torch::full({3}, 3., torch::kFloat64)));
  EXPECT_FALSE(activation.grad().requires_grad());
  EXPECT_FALSE(x.grad().defined());
}

TEST(Backward, InputsGetTheirGradients) {
  auto problem = make_problem("GroupNorm");
  SGDPH optimizer(*problem.model);
  problem.inputs.requires_grad_(true);
  const auto expected = torch::autograd::grad({problem.loss()}, {problem.inputs})[0];
  optimizer.backward(problem.loss());
  EXPECT_TRUE(torch::allclose(problem.inputs.grad(), expected, 1e-12, 1e-14));
}

TEST(Backward, ASecondOptimizerOnTheOtherParametersTrains) {
  auto problem = make_problem("BatchNorm");
  Parameters norms, rest;
  for (const auto& parameter : problem.model->parameters()) (parameter.dim() == 1 ? norms : rest).push_back(parameter);
  SGDPH blocks(norms, SGDPHOptions(0.05));
  torch::optim::AdamW others(rest, torch::optim::AdamWOptions(0.01));
  const auto before = problem.loss().item<double>();
  Parameters start;
  for (const auto& parameter : rest) start.push_back(parameter.detach().clone());
  for (int t = 0; t < 20; ++t) {
    blocks.zero_grad();
    others.zero_grad();
    blocks.backward(problem.loss());
    blocks.step();
    others.step();
  }
  for (size_t i = 0; i < rest.size(); ++i) EXPECT_FALSE(torch::equal(rest[i], start[i])) << i;
  EXPECT_LT(problem.loss().item<double>(), before);
}

TEST_F(Quadratic, CallingBothBackwardsIsAnErrorThatSaysSo) {
  for (const bool due : {true, false}) {
    SGDPH optimizer(parameters, SGDPHOptions(0.1).rule(Rule::Paper).second_order(due));
    const auto before = x.detach().clone();
    {
      const auto value = loss().exp();
      optimizer.backward(value, /*retain_graph=*/true);
      value.backward();
      EXPECT_ERROR(optimizer.step(), "SGDPH::step", "loss.backward()", "measure(false)");
    }
    optimizer.zero_grad();
    {
      const auto value = loss().exp();
      value.backward({}, /*retain_graph=*/true);
      EXPECT_ERROR(optimizer.backward(value), "SGDPH::backward", "loss.backward()");
    }
    EXPECT_TRUE(torch::equal(x, before)) << "nothing changed";
    optimizer.zero_grad();
    optimizer.backward(loss());
    EXPECT_NO_THROW(optimizer.step());
  }
}

TEST(Backward, APlainPassOfAnotherLossIsSeenWhateverItReaches) {
  // The largest parameter is in neither loss.
  auto largest = make_leaf(9), x = make_leaf(3), y = make_leaf(4);
  SGDPH optimizer(Parameters{largest, x, y}, SGDPHOptions(0.1).refresh(Refresh::All));
  const auto of_x = [&] { return x.pow(3).sum(); };
  const auto of_y = [&] { return y.pow(3).sum(); };
  optimizer.backward(of_x());
  of_y().backward();
  EXPECT_ERROR(optimizer.step(), "SGDPH::step", "loss.backward()");
  EXPECT_ERROR(optimizer.backward(of_x()), "SGDPH::backward", "loss.backward()");

  // Also one that reaches the watched parameter alone, and in later windows.
  for (int step = 0; step < 2; ++step) {
    for (auto* other : {&largest, &y, &x}) {
      optimizer.zero_grad();
      optimizer.backward(of_x());
      other->pow(3).sum().backward();
      EXPECT_ERROR(optimizer.step(), "SGDPH::step", "loss.backward()");
    }
    optimizer.zero_grad();
    optimizer.backward(of_x());
    EXPECT_NO_THROW(optimizer.step());
  }

  // A plain pass may also come first, before a window is begun.
  for (int step = 0; step < 2; ++step) {
    for (auto* other : {&largest, &y, &x}) {
      optimizer.zero_grad();
      other->pow(3).sum().backward();
      EXPECT_ERROR(optimizer.backward(of_x()), "SGDPH::backward", "loss.backward()");
    }
    optimizer.zero_grad();
    optimizer.backward(of_x());
    EXPECT_NO_THROW(optimizer.step());
  }
  // The first hook of a tensor's own drops others of its list.
  y.register_hook([](const at::Tensor&) {});
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    optimizer.backward(of_x());
    of_y().backward();
    EXPECT_ERROR(optimizer.step(), "SGDPH::step", "loss.backward()");
  }

  // What was cleared by hand before the other pass no longer counts.
  optimizer.zero_grad();
  optimizer.backward(of_x());
  for (auto* leaf : {&largest, &x, &y}) leaf->mutable_grad().reset();
  of_y().backward();
  EXPECT_NO_THROW(optimizer.step());
  optimizer.zero_grad();
  optimizer.backward(of_x());
  x.mutable_grad().zero_();
  of_x().backward();
  EXPECT_NO_THROW(optimizer.step());
}

TEST(Backward, GradientsThatAreAskedForOrWrittenAreNoPass) {
  auto x = make_leaf(3), y = make_leaf(4);
  SGDPH optimizer(Parameters{x, y}, SGDPHOptions(0.01).refresh(Refresh::All).rule(Rule::Paper));
  const auto loss = [&] { return x.pow(3).sum() + y.pow(3).sum(); };
  const auto ask = [&] { torch::autograd::grad({loss()}, {x, y}); };
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    ask();
    for (auto* leaf : {&x, &y}) leaf->mutable_grad() = torch::ones_like(*leaf).detach();  // of a penalty, say
    optimizer.backward(loss());
    ask();
    for (auto* leaf : {&x, &y}) leaf->mutable_grad() = leaf->grad() * 0.5;
    EXPECT_NO_THROW(optimizer.step());
    EXPECT_EQ(optimizer.last_step().blocks_refreshed.size(), 2);
  }
}

TEST(Backward, APlainPassThatFailsLeavesAWatchThatGoesOn) {
  auto x = make_leaf(3), y = make_leaf(4);
  SGDPH optimizer(Parameters{x, y}, SGDPHOptions(0.01).refresh(Refresh::All));
  const auto loss = [&] { return x.pow(3).sum() + y.pow(3).sum(); };
  bool fails = true;
  // The other one is reached first.
  x.register_hook([&](const at::Tensor&) -> void { TORCH_CHECK(!fails, "the hook failed"); });
  for (int step = 0; step < 2; ++step) {
    fails = true;
    EXPECT_ERROR(loss().backward(), "the hook failed");
    fails = false;
    optimizer.zero_grad();
    optimizer.backward(loss());
    loss().backward();
    EXPECT_ERROR(optimizer.step(), "SGDPH::step", "loss.backward()");
    optimizer.zero_grad();
    optimizer.backward(loss());
    EXPECT_NO_THROW(optimizer.step());
    optimizer.zero_grad();
  }
}

TEST(Backward, WhatWasClearedByHandIsNotMeasuredWithAPlainPassAfterIt) {
  auto largest = make_leaf(9), x = make_leaf(3);
  SGDPH optimizer(Parameters{largest, x}, SGDPHOptions(0.1).refresh(Refresh::All));
  const auto loss = [&] { return largest.pow(3).sum() + x.pow(3).sum(); };
  optimizer.backward(100 * loss());
  for (auto* leaf : {&largest, &x}) leaf->mutable_grad().reset();
  x.pow(3).sum().backward();
  optimizer.step();
  EXPECT_TRUE(optimizer.last_step().blocks_refreshed.empty()) << "what was thrown away is not measured";
}

/// What a reducer does, say, after a gradient has been added to.
class AfterLeaf final : public torch::autograd::FunctionPostHook {
 public:
  explicit AfterLeaf(std::function<void()> action) : action_(std::move(action)) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs, const torch::autograd::variable_list& /*inputs*/) override {
    action_();
    return outputs;
  }

 private:
  std::function<void()> action_;
};

void after(const at::Tensor& leaf, std::function<void()> action) {
  // The node lives as long as it is held.
  static std::vector<detail::NodePtr> nodes;
  nodes.push_back(torch::autograd::impl::gradient_edge(leaf).function);
  nodes.back()->add_post_hook(std::make_unique<AfterLeaf>(std::move(action)));
}

TEST(Backward, APlainPassAfterClearedGradientsIsNoErrorWhateverHooksMakeOfThem) {
  for (const int clears : {0, 1, 2}) {
    auto problem = make_problem("BatchNorm");
    SGDPH optimizer(*problem.model, SGDPHOptions(0.01));
    for (auto& parameter : problem.model->parameters()) {
      parameter.register_hook([](const at::Tensor& gradient) { return gradient.clamp(-1e-3, 1e-3); });
      after(parameter, [parameter] { parameter.mutable_grad().mul_(0.5); });
    }
    for (int step = 0; step < 3; ++step) {
      optimizer.backward(problem.loss());
      if (clears == 0) problem.model->zero_grad();
      for (auto& parameter : problem.model->parameters()) {
        if (clears == 1) parameter.mutable_grad().zero_();
        if (clears == 2) parameter.mutable_grad().reset();
      }
      problem.loss().backward();
      EXPECT_NO_THROW(optimizer.step()) << "cleared in way " << clears;
      optimizer.zero_grad();
    }
  }
}

TEST(Backward, SparseAndDenseGradientsOfPlainPassesAddUp) {
  auto table = torch::ones({5, 3}, torch::kFloat64).requires_grad_(true), x = make_leaf(3);
  SGDPH optimizer(Parameters{table, x}, SGDPHOptions(0.1));
  optimizer.backward(table.pow(2).sum() + x.pow(2).sum(), BackwardOptions().measure(false));
  const auto rows = torch::tensor({1, 2});
  EXPECT_NO_THROW(torch::embedding(table, rows, -1, false, /*sparse=*/true).sum().backward());
}

TEST(Backward, HooksOfLeavesMayStepAndClear) {
  auto x = make_leaf(3), y = make_leaf(5);
  SGDPH optimizer(Parameters{x, y}, SGDPHOptions(0.01).refresh(Refresh::All));
  int calls = 0;
  bool steps = true;
  after(y, [&] {
    ++calls;
    if (steps) optimizer.step();
    optimizer.zero_grad();
  });
  const auto loss = [&] { return x.pow(3).sum() + y.pow(3).sum(); };
  for (int step = 0; step < 3; ++step) {
    const auto value = loss();
    optimizer.update_curvature(value);
    value.backward();
  }
  steps = false;
  for (int step = 0; step < 3; ++step) {
    optimizer.backward(loss(), BackwardOptions().measure(step > 0));
    optimizer.discard();
  }
  EXPECT_EQ(calls, 6);
  EXPECT_LE(torch::autograd::impl::gradient_edge(y).function->pre_hooks().size(), 3U) << "hooks do not pile up";
}

TEST_F(Quadratic, OneBackwardOrTheOtherIsNoError) {
  SGDPH optimizer(parameters, SGDPHOptions(0.1).rule(Rule::Paper));
  const auto clears = [&](int way) {
    if (way == 0) optimizer.zero_grad();
    if (way == 1) static_cast<torch::optim::Optimizer&>(optimizer).zero_grad();
    for (const auto& parameter : parameters) {
      if (way == 2) parameter.mutable_grad().zero_();
      if (way == 3) parameter.mutable_grad().reset();
    }
  };
  for (int way = 0; way < 4; ++way) {
    for (int turn = 0; turn < 2; ++turn) {
      optimizer.backward(loss());  // abandoned
      clears(way);
      loss().backward();
      EXPECT_NO_THROW(optimizer.step()) << way;
      EXPECT_TRUE(optimizer.last_step().blocks_refreshed.empty()) << way << ": of a batch that was abandoned";
      clears(way);
      loss().backward();  // abandoned
      clears(way);
      optimizer.backward(loss());
      EXPECT_NO_THROW(optimizer.step()) << way;
      EXPECT_FALSE(optimizer.last_step().blocks_refreshed.empty()) << way;
      clears(way);
    }
  }
}

TEST_F(Quadratic, AnotherOptimizerOnTheSameLossNamesItsInputs) {
  SGDPH one(Parameters{x}, SGDPHOptions(0.1).rule(Rule::Paper).shift_guard(false));
  AdaHessian other(Parameters{w, y}, AdaHessianOptions(0.01));
  for (int t = 0; t < 3; ++t) {
    one.zero_grad();
    other.zero_grad();
    const auto value = loss();
    one.backward(value, BackwardOptions().retain_graph(true).inputs({x}));
    other.backward(value, BackwardOptions().inputs({w, y}));
    expect(x.grad(), a.mv(x.detach()), "once");
    expect(w.grad(), 2 * w.detach(), "once");
    one.step();
    other.step();
    expect(one.last_step().blocks_refreshed.at(0).estimate, a.sum(1), "measured");
  }
}

TEST_F(Quadratic, OfTheInputsAloneCurvatureIsMeasured) {
  SGDPH optimizer(parameters, SGDPHOptions(0.1).rule(Rule::Paper).shift_guard(false));
  optimizer.backward(loss(), BackwardOptions().inputs({y}));
  EXPECT_FALSE(x.grad().defined());
  optimizer.step();
  ASSERT_EQ(optimizer.last_step().blocks_refreshed.size(), 1);
  EXPECT_TRUE(optimizer.last_step().blocks_refreshed[0].parameter.is_same(y));
}

TEST_F(Quadratic, BlocksThatShareAGradientOwnOneEach) {
  // The engine hands one tensor to both; gradients that share memory would add up twice.
  auto other = leaf({0.2, 0.3});
  SGDPH optimizer(Parameters{x, other}, SGDPHOptions(0.1).rule(Rule::Paper).shift_guard(false));
  for (int call = 1; call <= 2; ++call) {
    optimizer.backward((x + other).square().sum());
    expect(x.grad(), call * 2 * (x + other).detach(), "one");
    expect(other.grad(), call * 2 * (x + other).detach(), "other");
  }
  x.mutable_grad().zero_();
  EXPECT_GT(other.grad().abs().min().item<double>(), 0);
}

TEST_F(Quadratic, AnExpandedGradientIsStoredDense) {
  SGDPH optimizer(Parameters{x}, SGDPHOptions(0.1).rule(Rule::Paper).shift_guard(false));
  optimizer.backward(x.sum());
  EXPECT_EQ(x.grad().stride(0), 1);
  optimizer.backward(x.square().sum());
  expect(x.grad(), 1 + 2 * x.detach(), "both");
}

TEST(Backward, NothingKeepsTheGraphAlive) {
  for (const auto& kind : kKinds) {
    auto problem = make_problem("BatchNorm");
    const auto optimizer = make(kind, problem);
    for (int step = 0; step < 2; ++step) {
      auto activations = problem.model->forward(problem.inputs);
      auto loss = torch::nn::functional::cross_entropy(activations, problem.labels);
      auto token = std::make_shared<int>(0);
      const std::weak_ptr<int> alive = token;
      // Owned by the graph.
      activations.register_hook([token](const at::Tensor& gradient) { return gradient; });
      token.reset();
      optimizer->backward(loss, /*retain_graph=*/step == 1);
      EXPECT_FALSE(alive.expired());
      activations.reset();
      loss.reset();
      EXPECT_TRUE(alive.expired()) << kind << ": a reference cycle, or a measurement, holds the graph";
      optimizer->step();
      optimizer->zero_grad();
    }
  }
}

TEST_F(Quadratic, InferenceModeIsRefused) {
  SGDPH optimizer(parameters);
  const auto value = loss();
  const c10::InferenceMode mode;
  EXPECT_ERROR(optimizer.backward(value), "InferenceMode");
  EXPECT_ERROR(optimizer.update_curvature(value), "InferenceMode");
}

TEST_F(Quadratic, AnOptimizerThatMovedGoesOn) {
  SGDPH first(parameters, SGDPHOptions(0.1).rule(Rule::Paper).shift_guard(false));
  first.backward(loss());
  SGDPH moved(std::move(first));
  moved.backward(loss());
  moved.step();
  expect(moved.last_step().blocks_refreshed.at(0).estimate, 2 * a.sum(1), "both calls");
}

}  // namespace
}  // namespace sgdph::test::backward_test
