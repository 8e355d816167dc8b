// What looks like a shift-invariant block and is none is never marked; what is one is found, in low precision too.

#include "support/autocast.h"
#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <set>

namespace sgdph::test::guard_evidence_test {
namespace {

namespace nn = torch::nn;

std::set<std::string> with_reason(const SGDPH& optimizer, const std::string& text) {
  std::set<std::string> names;
  for (const auto& entry : optimizer.partition().entries) {
    if (entry.reason.find(text) != std::string::npos) names.insert(entry.name);
  }
  return names;
}

/// Residual branches linear - norm - tanh - linear - norm, each times a factor of its own.
struct Residuals : nn::Module {
  static constexpr int64_t kChannels = 8;

  Residuals(double factor, double last_gain) {
    torch::manual_seed(6);
    for (int i = 0; i < 3; ++i) {
      const auto name = std::to_string(i);
      register_module("in" + name, ins[i]);
      register_module("norm" + name, norms[i]);
      register_module("out" + name, outs[i]);
      register_module("last" + name, lasts[i]);
      torch::nn::init::constant_(lasts[i]->weight, last_gain);
      factors[i] = register_parameter("factor" + name, torch::full({kChannels}, factor));
    }
    register_module("head", head);
    inputs = torch::randn({64, kChannels});
    labels = inputs.slice(1, 0, 4).argmax(1);
  }

  at::Tensor loss() {
    auto x = inputs;
    for (int i = 0; i < 3; ++i) x = x + factors[i] * lasts[i](outs[i](torch::tanh(norms[i](ins[i](x)))));
    return nn::functional::cross_entropy(head(x), labels);
  }

  static nn::Linear linear() { return nn::Linear(nn::LinearOptions(kChannels, kChannels).bias(false)); }
  static nn::LayerNorm norm() { return nn::LayerNorm(nn::LayerNormOptions({kChannels})); }
  nn::Linear ins[3]{linear(), linear(), linear()}, outs[3]{linear(), linear(), linear()};
  nn::LayerNorm norms[3]{norm(), norm(), norm()}, lasts[3]{norm(), norm(), norm()};
  at::Tensor factors[3];
  nn::Linear head{kChannels, 4};
  at::Tensor inputs, labels;
};

/// Trains with each schedule; no block may be marked at any time.
template <class Model>
void expect_no_mark(int64_t steps, bool ends_with_blocks) {
  for (const auto refresh : {Refresh::Cyclic, Refresh::All}) {
    const auto model = std::make_unique<Model>();
    SGDPH optimizer(*model, SGDPHOptions(0.1).refresh(refresh));
    const auto candidates = optimizer.partition().blocks();
    ASSERT_GT(candidates, 0);
    int64_t step = 0;
    for (; step < steps; ++step) {
      train_step(optimizer, [&] { return model->loss(step); });
      ASSERT_EQ(with_reason(optimizer, "shift-invariant"), std::set<std::string>{}) << refresh << ", step " << step;
    }
    if (!ends_with_blocks) continue;
    EXPECT_EQ(optimizer.partition().blocks(), candidates) << refresh << '\n' << optimizer.partition();
  }
}

struct ZeroInitialised : Residuals {
  ZeroInitialised() : Residuals(1, 0) {}
  at::Tensor loss(int64_t) { return Residuals::loss(); }
};

TEST(NoFalseMark, OfResidualsThatStartAtZero) {
  ZeroInitialised model;
  SGDPH optimizer(model, SGDPHOptions(0.1).refresh(Refresh::All));
  train_step(optimizer, [&] { return model.loss(0); });
  EXPECT_EQ(with_reason(optimizer, "no curvature above rounding").count("norm0.weight"), 1)
      << "nothing goes through yet";
  expect_no_mark<ZeroInitialised>(100, true);
}

TEST(SlowNoFalseMark, OfResidualsThatStartAtZero) {
  expect_no_mark<ZeroInitialised>(300, true);
}

struct LayerScaled : Residuals {
  LayerScaled() : Residuals(1e-6, 1) {}
  at::Tensor loss(int64_t) { return Residuals::loss(); }
};

TEST(NoFalseMark, OfBranchesBehindALayerScaleOfAMillionth) {
  expect_no_mark<LayerScaled>(100, true);
}

TEST(SlowNoFalseMark, OfBranchesBehindALayerScaleOfAMillionth) {
  expect_no_mark<LayerScaled>(300, true);
}

struct Auxiliary : Residuals {
  Auxiliary() : Residuals(1, 1) { register_module("aux", aux); }
  at::Tensor loss(int64_t) { return Residuals::loss() + 1e-5 * torch::tanh(aux(inputs)).sum(1).sub(1).square().mean(); }
  nn::LayerNorm aux = norm();
};

TEST(NoFalseMark, OfALossOfSmallWeight) {
  expect_no_mark<Auxiliary>(100, false);
}

TEST(SlowNoFalseMark, OfALossOfSmallWeight) {
  expect_no_mark<Auxiliary>(300, false);
}

TEST(NoFalseMark, AndNoBlockOfLossesWhoseScalesHaveOppositeSigns) {
  torch::manual_seed(6);
  nn::Sequential model(nn::Conv2d(2, 5, 3), nn::BatchNorm2d(5), nn::Tanh(), nn::Flatten(), nn::Linear(20, 4));
  SGDPH optimizer(model, SGDPHOptions(0.1).refresh(Refresh::All));
  const auto inputs = torch::randn({8, 2, 4, 4});
  const auto labels = torch::randint(4, {8}, torch::kLong);
  for (const double sign : {1., -1.}) {
    const auto loss = nn::functional::cross_entropy(model->forward(inputs), labels);
    optimizer.backward(sign * loss, BackwardOptions().scale(sign));
  }
  optimizer.step();
  EXPECT_EQ(with_reason(optimizer, "no curvature above rounding"), std::set<std::string>{"0.bias"})
      << "batch norm takes it off again: " << optimizer.partition();
}

struct Critic : nn::Module {
  Critic() {
    torch::manual_seed(8);
    register_module("first", first);
    register_module("norm", norm);
  }
  /// Linear in the norm's parameters at the first two steps, curved from then on.
  at::Tensor loss(int64_t step) {
    const auto value = norm(torch::tanh(first(inputs)));
    return step < 2 ? value.mean() : value.sub(target).square().mean();
  }
  nn::Linear first{8, 8};
  nn::LayerNorm norm = Residuals::norm();
  at::Tensor inputs = torch::randn({16, 8}), target = torch::randn({16, 8});
};

TEST(NoFalseMark, OfALossThatStartsLinear) {
  expect_no_mark<Critic>(300, true);
}

/// gain * x, whose backward pass records nothing, as that of a fused kernel.
struct FusedGain : torch::autograd::Function<FusedGain> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::Tensor x, at::Tensor gain) {
    context->save_for_backward({x, gain});
    return x * gain;
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    const torch::NoGradGuard no_grad;
    const auto saved = context->get_saved_variables();
    return {gradients[0] * saved[1], (gradients[0] * saved[0]).sum(0)};
  }
};

struct FusedNorm : nn::Module {
  FusedNorm() {
    torch::manual_seed(9);
    register_module("norm", norm);
    gain = register_parameter("gain", torch::ones({8}));
  }
  at::Tensor loss(int64_t) {
    const auto x = torch::tanh(norm(inputs));
    return (fused ? FusedGain::apply(x, gain) : x * gain).sub(target).square().mean();
  }
  bool fused = true;
  nn::LayerNorm norm = Residuals::norm();
  at::Tensor gain;
  at::Tensor inputs = torch::randn({16, 8}), target = torch::randn({16, 8});
};

TEST(NotMeasurable, IsAReasonOfItsOwnAndSaidOnce) {
  for (const auto probe : {Probe::Ones, Probe::Rademacher, Probe::Hadamard}) {
    for (const auto refresh : {Refresh::Cyclic, Refresh::All}) {
      FusedNorm model;
      SGDPH optimizer(model, SGDPHOptions(0.1).refresh(refresh).probe(probe), blocks_named({"gain"}));
      testing::internal::CaptureStderr();
      for (int step = 0; step < 300; ++step) {
        train_step(optimizer, [&] { return model.loss(step); });
        ASSERT_EQ(with_reason(optimizer, "shift-invariant"), std::set<std::string>{});
      }
      const auto notice = testing::internal::GetCapturedStderr();
      // The norm's as well: their gradients have come through the layer and depend on more than their graph says.
      const std::set<std::string> all{"gain", "norm.bias", "norm.weight"};
      for (const auto& name : all) {
        const auto said = notice.find(name);
        EXPECT_NE(said, std::string::npos) << notice;
        EXPECT_EQ(notice.find(name, said + 1), std::string::npos) << "once: " << notice;
      }
      EXPECT_NE(notice.find("not measurable, first-order as long as it is so: "), std::string::npos) << notice;
      EXPECT_EQ(with_reason(optimizer, "not measurable"), all) << optimizer.partition();
      EXPECT_EQ(optimizer.partition().blocks(), 0);
      EXPECT_EQ(optimizer.param_state(model.gain)->refreshes(), 0);

      // Tried again at every turn, and a block as soon as it can be measured.
      model.fused = false;
      for (int step = 0; step < 4; ++step) train_step(optimizer, [&] { return model.loss(step); });
      EXPECT_EQ(optimizer.partition().blocks(), 3) << probe << refresh << '\n' << optimizer.partition();
    }
  }
}

TEST(NotMeasurable, BlocksTakeTheFirstOrderStep) {
  FusedNorm model;
  SGDPH optimizer(model, SGDPHOptions(0.05).momentum(0.5), blocks_named({"gain"}));
  for (int step = 0; step < 6; ++step) {
    const auto before = model.gain.detach().clone();
    const auto* state = optimizer.param_state(model.gain);
    const auto momentum = state == nullptr || !state->momentum_buffer().defined() ? torch::zeros_like(before)
                                                                                  : state->momentum_buffer().clone();
    train_step(optimizer, [&] { return model.loss(0); });
    if (step < 3) continue;  // the published start
    const auto expected = before - 0.05 * (0.5 * momentum + model.gain.grad());
    EXPECT_TRUE(torch::allclose(model.gain.detach(), expected, 1e-5, 1e-7)) << step;
  }
}

TEST(InferenceMode, IsRefusedAroundBackwardAndStep) {
  ZeroInitialised model;
  SGDPH optimizer(model, SGDPHOptions(0.1));
  optimizer.zero_grad();
  const auto loss = model.loss(0);
  {
    const c10::InferenceMode guard;
    EXPECT_ERROR(optimizer.backward(loss), "SGDPH::backward", "InferenceMode");
    EXPECT_ERROR(optimizer.update_curvature(loss), "SGDPH::update_curvature", "InferenceMode");
    EXPECT_ERROR(optimizer.step(), "InferenceMode");
  }
  EXPECT_EQ(optimizer.last_step().step, 0);
  EXPECT_FALSE(model.head->weight.grad().defined());
  optimizer.backward(loss);
  optimizer.step();
  EXPECT_TRUE(optimizer.last_step().applied) << "and nothing was lost";
}

/// A bias before LayerNorm, one before softmax, and others.
struct Biased : nn::Module {
  Biased() {
    torch::manual_seed(3);
    register_module("in", in);
    register_module("hidden", hidden);
    register_module("norm", norm);
    register_module("out", out);
  }
  at::Tensor loss(bool autocast) {
    const CpuAutocast mode(autocast);
    const auto x = torch::tanh(in(inputs));
    return nn::functional::cross_entropy(out(torch::tanh(norm(hidden(x).to(torch::kFloat)))).to(torch::kFloat), labels);
  }
  nn::Linear in{12, 16}, hidden{16, 24};
  nn::LayerNorm norm{nn::LayerNormOptions({24})};
  nn::Linear out{24, 10};
  at::Tensor inputs = torch::randn({64, 12}), labels = torch::randint(10, {64}, torch::kLong);
};

TEST(TrueMark, OfBiasesBeforeSoftmaxAndNormUnderAutocastToo) {
  for (const bool autocast : {false, true}) {
    for (const auto refresh : {Refresh::Cyclic, Refresh::All}) {
      for (uint64_t seed = 0; seed < 10; ++seed) {
        Biased model;
        SGDPH optimizer(model, SGDPHOptions(0.02).refresh(refresh).seed(seed), blocks_named({"*.bias"}));
        ASSERT_EQ(optimizer.partition().blocks(), 5);
        for (int step = 0; step < 40; ++step) train_step(optimizer, [&] { return model.loss(autocast); });
        EXPECT_EQ(with_reason(optimizer, "shift-invariant"), (std::set<std::string>{"hidden.bias", "out.bias"}))
            << autocast << refresh << seed << '\n'
            << optimizer.partition();
        EXPECT_EQ(optimizer.partition().blocks(), 3);
      }
    }
  }
}

}  // namespace
}  // namespace sgdph::test::guard_evidence_test
