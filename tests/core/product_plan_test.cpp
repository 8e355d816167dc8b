// Products by the plan are the plain ones, and the plan leaves nothing behind.

#include "support/branch_network.h"
#include "support/derivatives.h"
#include "support/training.h"

#include <torch/csrc/autograd/function_hook.h>

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <typeinfo>

namespace sgdph::test::product_plan_test {
namespace {

using torch::autograd::grad;

/// Measures and moves nothing.
SGDPHOptions still(Refresh refresh) {
  return SGDPHOptions(0).refresh(refresh).shift_guard(false);
}

/// The block's Hessian times the probe, times the probe, without any plan.
at::Tensor plain_estimate(const at::Tensor& loss, const at::Tensor& block, const at::Tensor& probe) {
  const auto gradient = grad({loss}, {block}, {}, true, true);
  return probe * grad(gradient, {block}, {probe})[0];
}

/// But for those that watch, until the step is done, which passes come by a leaf.
size_t hooks_of(const at::Tensor& loss) {
  std::vector<torch::autograd::Node*> open{loss.grad_fn().get()};
  std::set<torch::autograd::Node*> seen;
  size_t hooks = 0;
  while (!open.empty()) {
    auto* node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    for (const auto& hook : node->pre_hooks()) {
      const auto& one = *hook;
      if (std::strstr(typeid(one).name(), "GradientWatch") == nullptr) ++hooks;
    }
    for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
  }
  return hooks;
}

Tensors trainable(const torch::nn::Module& model) {
  Tensors found;
  for (const auto& parameter : model.parameters()) {
    if (parameter.requires_grad()) found.push_back(parameter);
  }
  return found;
}

void expect_gradients(const Tensors& parameters, const Tensors& expected, double factor = 1) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_LE(relative_difference(parameters[i].grad(), expected[i] * factor), 1e-12) << "parameter " << i;
  }
}

/// Double gradients of a random combination of the gradients, for every parameter.
Tensors double_gradients(const at::Tensor& loss, const Tensors& parameters) {
  torch::manual_seed(5);
  const auto first = grad({loss}, parameters, {}, true, true);
  Tensors weights;
  for (const auto& gradient : first) weights.push_back(torch::randn_like(gradient));
  return grad(first, parameters, weights, /*retain_graph=*/true, false, true);
}

template <class Kind>
class ProductPlanOn : public testing::Test {
 public:
  BranchProblem<Kind::value> problem{/*channels_last=*/false};
  Tensors parameters = trainable(*problem.model);

  void expect_cyclic() {
    SGDPH optimizer(*problem.model, still(Refresh::Cyclic));
    size_t blocks = 0;
    for (const auto& parameter : parameters)
      blocks += parameter.dim() == 1 && !parameter.is_same(problem.model->fc->bias);
    EXPECT_GE(blocks, 8);
    const auto expected = grad({problem.loss()}, parameters);
    std::set<std::string> seen;
    for (size_t step = 0; step < blocks; ++step) {
      train_step(optimizer, [&] { return problem.loss(); });
      ASSERT_EQ(optimizer.last_step().blocks_refreshed.size(), 1);
      const auto& block = optimizer.last_step().blocks_refreshed[0];
      seen.insert(block.name);
      const auto plain = plain_estimate(problem.loss(), block.parameter, torch::ones_like(block.parameter));
      EXPECT_LE(relative_difference(block.estimate, plain), 1e-10) << block.name;
      EXPECT_GT(plain.abs().max().template item<double>(), 1e-8) << block.name;
      expect_gradients(parameters, expected);
    }
    EXPECT_EQ(seen.size(), blocks);
  }
};
using Kinds = testing::Types<std::true_type, std::false_type>;
struct KindNames {
  template <class Kind>
  static std::string GetName(int) {
    return Kind::value ? "FusedLayers" : "StockLayers";
  }
};
TYPED_TEST_SUITE(ProductPlanOn, Kinds, KindNames);

TYPED_TEST(ProductPlanOn, EveryBlockInTurnHasThePlainProductAndAllGradientsArePlain) {
  this->expect_cyclic();
}

TYPED_TEST(ProductPlanOn, ChannelsLastInputsChangeNothing) {
  this->problem = BranchProblem<TypeParam::value>(/*channels_last=*/true);
  this->parameters = trainable(*this->problem.model);
  this->expect_cyclic();
}

TYPED_TEST(ProductPlanOn, FrozenParametersChangeNothing) {
  auto& model = *this->problem.model;
  for (auto* frozen : {&model.conv1->weight, &model.bn2->bias, &model.conv4->weight, &model.twice->weight}) {
    frozen->requires_grad_(false);
  }
  model.bn1->weight.requires_grad_(false);
  this->parameters = trainable(model);
  this->expect_cyclic();
}

TYPED_TEST(ProductPlanOn, TheGradientAfterHooksOfTheUserIsWhatIsDifferentiated) {
  int calls = 0;
  bool fires = true;
  auto forward = [&] {
    const auto loss = this->problem.loss();
    this->problem.model->middle.register_hook([&](const at::Tensor& g) {
      ++calls;
      return fires ? g * 1.5 + g * g : g;
    });
    return loss;
  };
  // A derivative by what comes before the hook passes it by: it speaks of gradients of the loss.
  const auto plain_estimate = [&](const at::Tensor& loss, const at::Tensor& block, const at::Tensor& probe) {
    const auto gradient = grad({loss}, {block}, {}, true, true);
    fires = false;
    const auto product = grad(gradient, {block}, {probe})[0];
    fires = true;
    return probe * product;
  };
  SGDPH optimizer(*this->problem.model, still(Refresh::Cyclic));
  const auto expected = grad({forward()}, this->parameters);
  for (size_t step = 0; step < optimizer.partition().blocks(); ++step) {
    calls = 0;
    train_step(optimizer, forward);
    EXPECT_EQ(calls, 1) << "as in loss.backward()";
    const auto& block = optimizer.last_step().blocks_refreshed.at(0);
    const auto plain = plain_estimate(forward(), block.parameter, torch::ones_like(block.parameter));
    EXPECT_LE(relative_difference(block.estimate, plain), 1e-10) << block.name;
    expect_gradients(this->parameters, expected);
  }
}

TYPED_TEST(ProductPlanOn, AllBlocksAtOnceHaveThePlainProducts) {
  for (const auto refresh : {Refresh::All, Refresh::Joint}) {
    SGDPH optimizer(*this->problem.model, still(refresh).probe(Probe::Rademacher));
    Tensors blocks, probes;
    optimizer.set_probe_source([&](const at::Tensor& parameter) {
      blocks.push_back(parameter);
      probes.push_back(torch::randint(2, parameter.sizes(), torch::kFloat64) * 2 - 1);
      return probes.back();
    });
    const auto expected = grad({this->problem.loss()}, this->parameters);
    train_step(optimizer, [&] { return this->problem.loss(); });
    const auto& refreshed = optimizer.last_step().blocks_refreshed;
    ASSERT_EQ(refreshed.size(), blocks.size());
    ASSERT_EQ(refreshed.size(), optimizer.partition().blocks());
    const auto gradients = grad({this->problem.loss()}, blocks, {}, true, true);
    const auto products = grad(gradients, blocks, probes, true);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const auto plain = refresh == Refresh::Joint ? probes[i] * products[i]
                                                   : plain_estimate(this->problem.loss(), blocks[i], probes[i]);
      EXPECT_LE(relative_difference(refreshed[i].estimate, plain), 1e-10) << refreshed[i].name << " " << refresh;
    }
    expect_gradients(this->parameters, expected);
  }
}

TYPED_TEST(ProductPlanOn, GradModeIsAsBefore) {
  for (const bool enabled : {true, false}) {
    SGDPH optimizer(*this->problem.model, still(Refresh::Cyclic));
    for (size_t step = 0; step < optimizer.partition().blocks(); ++step) {
      const auto loss = this->problem.loss();
      const auto again = this->problem.loss();
      const torch::AutoGradMode mode(enabled);
      optimizer.update_curvature(again);
      EXPECT_EQ(at::GradMode::is_enabled(), enabled);
      optimizer.backward(loss);
      EXPECT_EQ(at::GradMode::is_enabled(), enabled);
      optimizer.step();
    }
  }
}

TYPED_TEST(ProductPlanOn, ARetainedGraphIsAsNew) {
  SGDPH optimizer(*this->problem.model, still(Refresh::Cyclic));
  const auto expected = double_gradients(this->problem.loss(), this->parameters);
  const auto first = grad({this->problem.loss()}, this->parameters);
  for (size_t step = 0; step < optimizer.partition().blocks(); ++step) {
    optimizer.zero_grad();
    const auto loss = this->problem.loss();
    optimizer.backward(loss, /*retain_graph=*/true);
    EXPECT_EQ(hooks_of(loss), 0);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto found = double_gradients(loss, this->parameters);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_LE(relative_difference(found[i], expected[i]), 1e-10) << "parameter " << i;
      }
    }
    optimizer.backward(loss, BackwardOptions().measure(false));
    expect_gradients(this->parameters, first, 2);
    EXPECT_ERROR(loss.backward(), "second time");
    optimizer.step();
  }
}

TYPED_TEST(ProductPlanOn, AGraphThatWasNotRetainedIsGone) {
  SGDPH optimizer(*this->problem.model, still(Refresh::Cyclic));
  const auto loss = this->problem.loss();
  optimizer.backward(loss);
  EXPECT_ERROR(loss.backward(), "second time");
  EXPECT_ERROR(optimizer.backward(loss), "second time");
}

TYPED_TEST(ProductPlanOn, MeasuringBeforeAPlainBackwardLeavesItPlain) {
  SGDPH optimizer(*this->problem.model, still(Refresh::Cyclic));
  const auto expected = grad({this->problem.loss()}, this->parameters);
  for (size_t step = 0; step < optimizer.partition().blocks(); ++step) {
    optimizer.zero_grad();
    const auto loss = this->problem.loss();
    optimizer.update_curvature(loss);
    EXPECT_EQ(hooks_of(loss), 0);
    loss.backward();
    expect_gradients(this->parameters, expected);
    optimizer.step();
    ASSERT_EQ(optimizer.last_step().blocks_refreshed.size(), 1);
    const auto& block = optimizer.last_step().blocks_refreshed[0];
    const auto plain = plain_estimate(this->problem.loss(), block.parameter, torch::ones_like(block.parameter));
    EXPECT_LE(relative_difference(block.estimate, plain), 1e-10) << block.name;
  }
}

TYPED_TEST(ProductPlanOn, AnErrorInTheMiddleLeavesGradModeAndHooksAsBefore) {
  SGDPH optimizer(*this->problem.model, still(Refresh::Cyclic));
  const auto expected = double_gradients(this->problem.loss(), this->parameters);
  const auto clear = [&] {
    for (auto& parameter : this->parameters) parameter.mutable_grad().reset();
  };
  const auto have_gradients = [&] {
    std::vector<bool> found;
    for (const auto& parameter : this->parameters) found.push_back(parameter.grad().defined());
    return found;
  };
  const auto plain = this->problem.loss();
  this->problem.model->middle.register_hook([](const at::Tensor&) -> void { TORCH_CHECK(false, "the hook failed"); });
  EXPECT_ERROR(plain.backward(), "the hook failed");
  const auto half = have_gradients();
  clear();
  for (const bool enabled : {true, false}) {
    for (size_t step = 0; step < optimizer.partition().blocks(); ++step) {
      const auto loss = this->problem.loss();
      bool fails = true;
      this->problem.model->middle.register_hook([&](const at::Tensor& gradient) {
        TORCH_CHECK(!fails, "the hook failed");
        return gradient;
      });
      const auto hooks = hooks_of(loss);  // LibTorch 1.x keeps the tensor's hook among them, 2.x apart
      {
        const torch::AutoGradMode mode(enabled);
        // Measures alone, it may have no need to come by the hook.
        error_of([&] { optimizer.update_curvature(loss); });
        EXPECT_EQ(at::GradMode::is_enabled(), enabled);
        EXPECT_ERROR(optimizer.backward(loss, /*retain_graph=*/true), "the hook failed");
        EXPECT_EQ(at::GradMode::is_enabled(), enabled);
      }
      EXPECT_EQ(hooks_of(loss), hooks);
      EXPECT_EQ(have_gradients(), half) << "as loss.backward() leaves them";
      clear();
      fails = false;
      const auto found = double_gradients(loss, this->parameters);
      for (size_t i = 0; i < found.size(); ++i) EXPECT_LE(relative_difference(found[i], expected[i]), 1e-10) << i;
      fails = true;
      const auto ours = this->problem.loss();
      this->problem.model->middle.register_hook(
          [&](const at::Tensor&) -> void { TORCH_CHECK(!fails, "failed again"); });
      EXPECT_ERROR(optimizer.backward(ours), "failed again");
      EXPECT_EQ(hooks_of(ours), hooks);
      // On to the next block.
      train_step(optimizer, [&] { return this->problem.loss(); });
      clear();
    }
  }
}

TYPED_TEST(ProductPlanOn, TwoLossesMayShareAGraph) {
  SGDPH optimizer(*this->problem.model, still(Refresh::Cyclic));
  const auto losses = [&] {
    const auto output = this->problem.model->forward(this->problem.inputs);
    return std::pair(torch::nn::functional::cross_entropy(output, this->problem.labels), output.square().mean());
  };
  for (size_t step = 0; step < optimizer.partition().blocks(); ++step) {
    const auto [a, b] = losses();
    const auto expected = grad({a + b}, this->parameters, {}, /*retain_graph=*/true);
    optimizer.zero_grad();
    optimizer.backward(a, /*retain_graph=*/true);
    optimizer.backward(b);
    expect_gradients(this->parameters, expected);
    optimizer.step();
  }
}

TYPED_TEST(ProductPlanOn, AfterAnErrorTheHalfFreedGraphSaysSo) {
  SGDPH optimizer(*this->problem.model, still(Refresh::Cyclic));
  bool fail = true;
  const auto loss = this->problem.loss();
  this->problem.model->middle.register_hook([&](const at::Tensor& g) {
    if (fail) throw std::runtime_error("not now");
    return g;
  });
  EXPECT_THROW(optimizer.backward(loss), std::exception);
  fail = false;
  try {
    loss.backward();
    // Nothing was freed before the error.
    EXPECT_FALSE(TypeParam::value);
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("second time"), std::string::npos) << error.what();
  }
  train_step(optimizer, [&] { return this->problem.loss(); });
}

TEST(ProductPlan, OfALossThatIsAParameterItselfIsEmpty) {
  const auto one = torch::ones({1}, torch::kFloat64).requires_grad_(true);
  const auto other = torch::ones({1}, torch::kFloat64).requires_grad_(true);
  SGDPH optimizer(Tensors{one, other}, still(Refresh::All));
  optimizer.backward(one);
  EXPECT_EQ(one.grad().item<double>(), 1);
  optimizer.step();
  for (const auto& block : optimizer.last_step().blocks_refreshed) {
    EXPECT_EQ(block.estimate.abs().max().item<double>(), 0) << block.name;
  }
}

TEST(ProductPlan, OptimizersTakeTheSameStepsOnFusedAndStockLayers) {
  const auto train = [](auto problem, auto make) {
    const auto optimizer = make(*problem.model);
    for (int step = 0; step < 30; ++step) train_step(*optimizer, [&] { return problem.loss(); });
    return problem.model->parameters();
  };
  const auto compare = [&](auto make) {
    const auto fused = train(BranchProblem<true>(), make);
    const auto stock = train(BranchProblem<false>(), make);
    for (size_t i = 0; i < fused.size(); ++i) EXPECT_LE(relative_difference(fused[i], stock[i]), 1e-9) << i;
  };
  compare([](torch::nn::Module& model) { return std::make_unique<SGDPH>(model, SGDPHOptions(0.05)); });
  compare([](torch::nn::Module& model) {
    return std::make_unique<AdaHessian>(model.parameters(), AdaHessianOptions(0.01));
  });
}

}  // namespace
}  // namespace sgdph::test::product_plan_test
