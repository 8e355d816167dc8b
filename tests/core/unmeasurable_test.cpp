// What cannot be differentiated twice is not measured, and everything else is as without it.

#include "support/backwards.h"
#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace sgdph::test::unmeasurable_test {
namespace {

namespace nn = torch::nn;

/// Two layers with norms and a head, in float64.
struct Net : nn::Module {
  Net() {
    torch::manual_seed(4);
    register_module("first", first);
    register_module("norm1", norm1);
    register_module("second", second);
    register_module("norm2", norm2);
    register_module("norm3", norm3);
    register_module("head", head);
    to(torch::kFloat64);
    inputs = torch::randn({12, 5}, torch::kFloat64);
    labels = torch::randint(3, {12}, torch::kLong);
  }

  at::Tensor loss() {
    auto x = torch::tanh(norm1(first(inputs)));
    x = middle ? middle(x) : x;
    return nn::functional::cross_entropy(head(torch::tanh(norm3(x))), labels);
  }
  static nn::LayerNorm norm() { return nn::LayerNorm(nn::LayerNormOptions({6})); }

  nn::Linear first{5, 6}, second{6, 6}, head{6, 3};
  nn::LayerNorm norm1 = norm(), norm2 = norm(), norm3 = norm();
  at::Tensor inputs, labels;
  Part branch = [this](const at::Tensor& x) { return torch::tanh(norm2(second(x))); };
  Part middle;  ///< what lies between norm1 and norm3
};

std::vector<std::pair<std::string, std::function<void(Net&)>>> middles() {
  return {
      {"checkpoint",
       [](Net& net) { net.middle = [&net](const at::Tensor& x) { return checkpointed(net.branch, x); }; }},
      {"residual checkpoint",
       [](Net& net) { net.middle = [&net](const at::Tensor& x) { return x + checkpointed(net.branch, x); }; }},
      {"direct and checkpointed",
       [](Net& net) {
         net.middle = [&net](const at::Tensor& x) { return net.branch(x.detach()) + checkpointed(net.branch, x); };
       }},
      {"fused", [](Net& net) { net.middle = [&net](const at::Tensor& x) { return FusedTanh::apply(net.branch(x)); }; }},
  };
}

std::vector<std::pair<std::string, std::function<std::unique_ptr<CurvatureOptimizer>(Net&)>>> optimizers() {
  const auto sgd_ph = [](const SGDPHOptions& options) {
    return [options](Net& net) { return std::make_unique<SGDPH>(net, options); };
  };
  return {
      {"Cyclic", sgd_ph(SGDPHOptions(0.05))},
      {"All", sgd_ph(SGDPHOptions(0.05).refresh(Refresh::All))},
      {"Joint", sgd_ph(SGDPHOptions(0.05).probe(Probe::Rademacher).refresh(Refresh::Joint))},
      {"AdaHessian", [](Net& net) { return std::make_unique<AdaHessian>(net.parameters(), AdaHessianOptions(0.01)); }},
  };
}

Parameters plain_gradients(Net& net) {
  net.zero_grad();
  net.loss().backward();
  Parameters gradients;
  for (const auto& parameter : net.parameters()) gradients.push_back(parameter.grad().clone());
  net.zero_grad();
  return gradients;
}

TEST(Unmeasurable, GradientsAreThoseOfThePlainPass) {
  for (const auto& [middle, set] : middles()) {
    for (const auto& [name, make] : optimizers()) {
      Net net;
      set(net);
      const auto optimizer = make(net);
      for (int step = 0; step < 8; ++step) {
        const auto expected = plain_gradients(net);
        optimizer->zero_grad();
        optimizer->backward(net.loss());
        for (size_t i = 0; i < expected.size(); ++i) {
          const auto& found = net.parameters()[i].grad();
          EXPECT_TRUE(torch::allclose(found, expected[i], 1e-12, 1e-14)) << middle << ", " << name << ", " << i;
          EXPECT_FALSE(found.requires_grad());
        }
        optimizer->step();
        EXPECT_TRUE(optimizer->last_step().applied);
      }
    }
  }
}

TEST(Unmeasurable, UpdateCurvatureLeavesGradientsAlone) {
  for (const auto& [middle, set] : middles()) {
    for (const auto& [name, make] : optimizers()) {
      Net net;
      set(net);
      const auto optimizer = make(net);
      optimizer->update_curvature(net.loss());
      for (const auto& item : net.named_parameters()) {
        EXPECT_FALSE(item.value().grad().defined()) << middle << ", " << name << ": " << item.key();
      }
      const auto expected = plain_gradients(net);
      optimizer->zero_grad();
      optimizer->update_curvature(net.loss());
      net.loss().backward();
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(torch::equal(net.parameters()[i].grad(), expected[i])) << middle << ", " << name << ", " << i;
      }
      optimizer->step();
    }
  }
}

TEST(Unmeasurable, AreTheBlocksWithinAndBeforeAndNoOthers) {
  for (const auto& [middle, set] : middles()) {
    for (const bool update : {false, true}) {
      for (const auto refresh : {Refresh::Cyclic, Refresh::All}) {
        Net net;
        set(net);
        SGDPH optimizer(net, SGDPHOptions(0.05).refresh(refresh));
        std::set<std::string> refreshed;
        for (int step = 0; step < 14; ++step) {
          const auto before = brute_force_hessian(net.loss(), {net.norm3->weight}).sum(1);
          optimizer.zero_grad();
          if (update) optimizer.update_curvature(net.loss());
          optimizer.backward(net.loss());
          optimizer.step();
          for (const auto& block : optimizer.last_step().blocks_refreshed) {
            refreshed.insert(block.name);
            if (block.name != "norm3.weight") continue;
            EXPECT_TRUE(torch::allclose(block.estimate, before, 1e-9, 1e-12)) << middle;
          }
        }
        EXPECT_EQ(refreshed, (std::set<std::string>{"norm3.weight", "norm3.bias"})) << middle;
        for (const auto& entry : optimizer.partition().entries) {
          const bool norm = entry.name == "norm1.weight" || entry.name == "norm1.bias" ||
                            entry.name == "norm2.weight" || entry.name == "norm2.bias";
          // Where nothing leads from norm1 into the graph but the checkpoint's input, it is behind it all the same.
          EXPECT_EQ(entry.reason.find("not measurable") != std::string::npos, norm) << middle << ": " << entry.name;
        }
      }
    }
  }
}

TEST(Unmeasurable, IsNotAFunctionWhoseBackwardCanBeDifferentiated) {
  /// The gradient times a constant: linear, and nothing is lost by it, even if what comes in has no graph.
  struct Half : torch::autograd::Function<Half> {
    static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.clone(); }
    static torch::autograd::variable_list backward(
        torch::autograd::AutogradContext*, torch::autograd::variable_list gradients) {
      return {gradients[0] * 0.5};
    }
  };
  for (const bool linear : {false, true}) {
    Net net;
    net.middle = [](const at::Tensor& x) { return Half::apply(x.exp()); };
    const auto loss = [&] {
      return linear ? Half::apply(torch::tanh(net.norm1(net.first(net.inputs)))).mean() : net.loss();
    };
    SGDPH optimizer(net, SGDPHOptions(0).refresh(Refresh::All).shift_guard(false));
    const auto expected = brute_force_hessian(loss(), {net.norm1->weight}).sum(1);
    train_step(optimizer, loss);
    ASSERT_FALSE(optimizer.last_step().blocks_refreshed.empty());
    const auto& block = optimizer.last_step().blocks_refreshed[0];
    EXPECT_EQ(block.name, "norm1.weight");
    EXPECT_TRUE(torch::allclose(block.estimate, expected, 1e-9, 1e-12));
    EXPECT_GT(expected.abs().max().item<double>(), 1e-6);
  }
}

TEST(Unmeasurable, ALossThatIsStaysSoBesideOthersOfTheWindow) {
  Net net;
  SGDPH optimizer(net, SGDPHOptions(0.05).refresh(Refresh::All).shift_guard(false));
  optimizer.backward(net.loss() / 2);
  net.middle = [](const at::Tensor& x) { return FusedTanh::apply(x); };
  optimizer.backward(net.loss() / 2);
  optimizer.step();
  std::set<std::string> refreshed;
  for (const auto& block : optimizer.last_step().blocks_refreshed) refreshed.insert(block.name);
  EXPECT_EQ(refreshed, (std::set<std::string>{"norm3.weight", "norm3.bias"})) << "half a curvature is none";
}

TEST(Unmeasurable, ParametersOfAdaHessianWaitForTheirFirstCurvatureAndKeepTheLast) {
  auto x = leaf({1, -2}), y = leaf({0.5, 3});
  AdaHessian optimizer(Parameters{x, y}, AdaHessianOptions(0.1));
  bool fused = true;
  const auto loss = [&] { return x.pow(4).sum() + (fused ? FusedTanh::apply(y) : torch::tanh(y)).square().sum(); };
  const auto start = y.detach().clone();
  testing::internal::CaptureStderr();
  for (int step = 0; step < 3; ++step) train_step(optimizer, loss);
  const auto notice = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(torch::equal(y, start)) << "nothing to divide by: " << y;
  EXPECT_FALSE(torch::equal(x, torch::tensor({1.0, -2.0}, torch::kFloat64)));
  const auto said = notice.find("AdaHessian: not measurable: group 0 parameter 1;");
  EXPECT_NE(said, std::string::npos) << notice;
  EXPECT_EQ(notice.find("not measurable", said + 20), std::string::npos) << "once: " << notice;

  fused = false;
  train_step(optimizer, loss);
  const auto curvature = state_of<AdaHessianParamState>(optimizer, y).exp_hessian_diag_sq() / (1 - 0.999);
  fused = true;
  for (int step = 0; step < 3; ++step) {
    const auto before = y.detach().clone();
    train_step(optimizer, loss);
    const auto& state = state_of<AdaHessianParamState>(optimizer, y);
    const auto corrected = state.exp_hessian_diag_sq() / (1 - std::pow(0.999, static_cast<double>(state.step())));
    EXPECT_TRUE(torch::allclose(corrected, curvature, 1e-9)) << "the last one serves on";
    EXPECT_FALSE(torch::equal(y, before));
  }
}

/// Versions up to 2.13 do.
bool refuses_second_derivative_of_cdist() {
  const auto x = torch::randn({2, 3}, torch::kFloat64).requires_grad_(true);
  const auto distances = torch::cdist(x, torch::randn({4, 3}, torch::kFloat64));
  try {
    const auto gradient = torch::autograd::grad({distances.sum()}, {x}, {}, true, true)[0];
    torch::autograd::grad({gradient.square().sum()}, {x});
    return false;
  } catch (const c10::Error&) {
    return true;
  }
}

TEST(Unmeasurable, AreBlocksBeforeAnOperatorWithoutASecondDerivative) {
  if (!refuses_second_derivative_of_cdist()) GTEST_SKIP() << "this LibTorch has a second derivative of cdist";
  for (const auto& [name, make] : optimizers()) {
    Net net;
    const auto points = torch::randn({4, 6}, torch::kFloat64);
    net.middle = [&](const at::Tensor& x) { return x + torch::cdist(net.branch(x), points).sum(1, true); };
    const auto optimizer = make(net);
    testing::internal::CaptureStderr();
    std::set<std::string> refreshed;
    for (int step = 0; step < 14; ++step) {
      const auto expected = plain_gradients(net);
      optimizer->zero_grad();
      optimizer->backward(net.loss());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(torch::allclose(net.parameters()[i].grad(), expected[i], 1e-12, 1e-14)) << name << ", " << i;
      }
      optimizer->step();
      EXPECT_TRUE(optimizer->last_step().applied) << name;
      for (const auto& block : optimizer->last_step().blocks_refreshed) refreshed.insert(block.name);
    }
    const auto notice = testing::internal::GetCapturedStderr();
    const auto said = notice.find("cdist");
    EXPECT_NE(said, std::string::npos) << name << ": what the operator says: " << notice;
    if (name == "Cyclic" || name == "All") {
      EXPECT_EQ(refreshed, (std::set<std::string>{"norm3.weight", "norm3.bias"})) << name;
      for (const auto& entry : dynamic_cast<SGDPH&>(*optimizer).partition().entries) {
        const bool before = entry.name.rfind("norm1", 0) == 0 || entry.name.rfind("norm2", 0) == 0;
        EXPECT_EQ(entry.reason.find("not measurable") != std::string::npos, before) << entry.name;
      }
    }
  }
}

TEST(Unmeasurable, ErrorsOfTheFirstPassAndOfUsersAreErrors) {
  /// Fails when it is differentiated for the second time.
  struct Second : torch::autograd::Function<Second> {
    static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.clone(); }
    static torch::autograd::variable_list backward(
        torch::autograd::AutogradContext*, torch::autograd::variable_list gradients) {
      return {Third::apply(gradients[0])};
    }
    struct Third : torch::autograd::Function<Third> {
      static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.clone(); }
      static torch::autograd::variable_list backward(
          torch::autograd::AutogradContext*, torch::autograd::variable_list) {
        TORCH_CHECK(false, "out of memory");
      }
    };
  };
  Net net;
  net.middle = [](const at::Tensor& x) { return Second::apply(x); };
  SGDPH optimizer(net, SGDPHOptions(0.05));
  EXPECT_ERROR(optimizer.backward(net.loss()), "out of memory");
}

}  // namespace
}  // namespace sgdph::test::unmeasurable_test
