// Half precision: blocks keep float32 copies of themselves, and our layers go along with autocast.

#include "support/autocast.h"
#include "support/training.h"

#include <sgdph/hessian.h>
#include <sgdph/nn.h>

#include <gtest/gtest.h>

#include <optional>
#include <sstream>

namespace sgdph::test::low_precision_test {
namespace {

namespace nn = torch::nn;

/// A gain of 16 channels of fixed features and a kernel behind it, in float32 but for the parameters themselves.
struct Scaled : nn::Module {
  explicit Scaled(torch::Dtype type) {
    torch::manual_seed(5);
    gain = register_parameter("gain", torch::ones({16}, type));
    kernel = register_parameter("kernel", (torch::randn({16, 4}) * 0.5).to(torch::kBFloat16).to(type));
    features = torch::randn({64, 16});
    labels = torch::randint(4, {64}, torch::kLong);
  }
  at::Tensor loss() {
    const auto x = torch::tanh(features * gain.to(torch::kFloat));
    return nn::functional::cross_entropy(x.mm(kernel.to(torch::kFloat)), labels);
  }
  at::Tensor gain, kernel, features, labels;
};

SGDPHOptions options() {
  return SGDPHOptions(0.01);
}

/// How far the gain moves in 300 steps.
at::Tensor movement(Scaled& model, SGDPH& optimizer) {
  for (int step = 0; step < 300; ++step) train_step(optimizer, [&] { return model.loss(); });
  const auto* state = optimizer.param_state(model.gain);
  return (state->master().defined() ? state->master() : model.gain).detach() - 1;
}

class LowPrecision : public testing::TestWithParam<torch::Dtype> {};

TEST_P(LowPrecision, AGainMovesAsThatOfFloat32) {
  for (const auto probe : {Probe::Ones, Probe::Rademacher, Probe::Hadamard}) {
    Scaled wide(torch::kFloat32), low(GetParam());
    low.kernel.set_data(low.kernel.to(torch::kFloat));  // the gain alone is of fewer digits
    SGDPH a(wide, options().probe(probe), blocks_named({"gain"})),
        b(low, options().probe(probe), blocks_named({"gain"}));
    const auto expected = movement(wide, a), found = movement(low, b);
    EXPECT_GT(expected.abs().max().item<double>(), 0.02) << "nothing to see";
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-3) << probe;

    const auto* state = b.param_state(low.gain);
    EXPECT_EQ(state->curvature().scalar_type(), torch::kFloat32);
    EXPECT_EQ(state->momentum_buffer().scalar_type(), torch::kFloat32);
    EXPECT_EQ(low.gain.scalar_type(), GetParam());
    EXPECT_TRUE(torch::equal(state->master().to(GetParam()), low.gain)) << "the parameter is its master rounded";
    EXPECT_FALSE(a.param_state(wide.gain)->master().defined());
    EXPECT_FALSE(b.param_state(low.kernel)->master().defined()) << "not asked for";
  }
}

TEST_P(LowPrecision, AWholeModelMovesAsThatOfFloat32WithMasterWeights) {
  Scaled wide(torch::kFloat32), low(GetParam());
  SGDPH a(wide, options(), blocks_named({"gain"})), b(low, options().master_weights(true), blocks_named({"gain"}));
  const auto expected = movement(wide, a), found = movement(low, b);
  EXPECT_GT(expected.abs().max().item<double>(), 0.02) << "nothing to see";
  EXPECT_LT((found - expected).abs().max().item<double>(), 1e-3);
}

TEST_P(LowPrecision, MasterWeightsServeTheRest) {
  const auto moved = [](torch::Dtype type, bool masters) {
    Scaled model(type);
    const auto start = model.kernel.detach().to(torch::kFloat).clone();
    SGDPH optimizer(model, SGDPHOptions(1e-4).momentum(0).master_weights(masters));
    for (int step = 0; step < 100; ++step) train_step(optimizer, [&] { return model.loss(); });
    const auto* state = optimizer.param_state(model.kernel);
    EXPECT_EQ(state != nullptr && state->master().defined(), masters && type != torch::kFloat32);
    return (masters && state->master().defined() ? state->master() : model.kernel).detach().to(torch::kFloat) - start;
  };
  const auto expected = moved(torch::kFloat32, true), with = moved(GetParam(), true),
             without = moved(GetParam(), false);
  EXPECT_LT((with - expected).norm().item<double>(), 0.02 * expected.norm().item<double>());
  EXPECT_GT((without - expected).norm().item<double>(), 0.2 * expected.norm().item<double>()) << "small steps are lost";
}

TEST_P(LowPrecision, ResumesWithTheSameBits) {
  const auto with = options().master_weights(true);
  Scaled whole(GetParam()), resumed(GetParam());
  SGDPH optimizer(whole, with, blocks_named({"gain"}));
  for (int step = 0; step < 10; ++step) train_step(optimizer, [&] { return whole.loss(); });
  std::stringstream file;
  torch::save(optimizer, file);
  {
    const torch::NoGradGuard no_grad;
    resumed.gain.copy_(whole.gain);
    resumed.kernel.copy_(whole.kernel);
  }
  SGDPH fresh(resumed, SGDPHOptions(7), blocks_named({"gain"}));
  torch::load(fresh, file);
  EXPECT_EQ(fresh.param_state(resumed.gain)->master().scalar_type(), torch::kFloat32);
  EXPECT_EQ(fresh.param_state(resumed.gain)->curvature().scalar_type(), torch::kFloat32);
  for (int step = 0; step < 30; ++step) {
    train_step(optimizer, [&] { return whole.loss(); });
    train_step(fresh, [&] { return resumed.loss(); });
  }
  EXPECT_TRUE(torch::equal(fresh.param_state(resumed.gain)->master(), optimizer.param_state(whole.gain)->master()));
  EXPECT_TRUE(torch::equal(resumed.kernel, whole.kernel));
}

TEST_P(LowPrecision, AMasterFollowsWhatIsWrittenToTheParameter) {
  Scaled model(GetParam());
  SGDPH optimizer(model, options(), blocks_named({"gain"}));
  for (int step = 0; step < 20; ++step) train_step(optimizer, [&] { return model.loss(); });
  const auto others = optimizer.param_state(model.gain)->master().slice(0, 1).clone();
  {
    const torch::NoGradGuard no_grad;
    model.gain[0] = 3;
  }
  dynamic_cast<SGDPHOptions&>(optimizer.param_groups()[0].options()).lr(0);
  train_step(optimizer, [&] { return model.loss(); });
  EXPECT_EQ(optimizer.param_state(model.gain)->master()[0].item<float>(), 3);
  EXPECT_TRUE(torch::equal(optimizer.param_state(model.gain)->master().slice(0, 1), others))
      << "the digits of the rest stay";
}

TEST_P(LowPrecision, AdaHessianLearnsAsInFloat32) {
  Scaled wide(torch::kFloat32), low(GetParam());
  AdaHessian a(wide.parameters(), AdaHessianOptions(0.05)), b(low.parameters(), AdaHessianOptions(0.05));
  const double before = wide.loss().item<double>();
  for (int step = 0; step < 100; ++step) {
    train_step(a, [&] { return wide.loss(); });
    train_step(b, [&] { return low.loss(); });
  }
  EXPECT_LT(wide.loss().item<double>(), before - 0.1) << "nothing to see";
  EXPECT_NEAR(low.loss().item<double>(), wide.loss().item<double>(), 0.02);
  EXPECT_EQ(low.gain.scalar_type(), GetParam());
  std::stringstream file;
  torch::save(b, file);
  AdaHessian fresh(low.parameters());
  torch::load(fresh, file);
  const auto& state = state_of<AdaHessianParamState>(fresh, low.gain);
  EXPECT_EQ(state.exp_hessian_diag_sq().scalar_type(), torch::kFloat32);
  EXPECT_TRUE(torch::equal(state.exp_avg(), state_of<AdaHessianParamState>(b, low.gain).exp_avg()));
}

INSTANTIATE_TEST_SUITE_P(Types, LowPrecision, testing::Values(torch::kBFloat16, torch::kHalf), [](const auto& info) {
  return info.param == torch::kBFloat16 ? "bfloat16" : "float16";
});

TEST(Autocast, OurConvolutionCastsAsTheStockOne) {
  torch::manual_seed(1);
  const auto inputs = torch::randn({2, 3, 8, 8});
  nn::Conv2d stock(nn::Conv2dOptions(3, 4, 3));
  sgdph::nn::Conv2d ours(*stock);
  const CpuAutocast on;
  const auto expected = stock(inputs), found = ours(inputs);
  EXPECT_EQ(found.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(torch::equal(found, expected));
  EXPECT_TRUE(torch::equal(ours(inputs.to(torch::kBFloat16)), expected));
}

TEST(Autocast, ProductsThroughOurConvolutionsAreThoseOfFloat32) {
  for (const int64_t channels : {6, 3}) {  // as many as come in, and fewer
    const auto product = [channels](torch::Dtype type, bool autocast) {
      torch::manual_seed(3);
      const auto inputs = torch::randn({4, 6, 6, 6}).to(type);
      std::vector<at::Tensor> weights, probes;
      for (const auto& shape : {std::vector<int64_t>{channels, 6, 3, 3}, {6, channels, 3, 3}}) {
        weights.push_back((torch::randn(shape) * 0.2).to(type).requires_grad_(true));
        probes.push_back(torch::randn(shape).to(type));
      }
      at::Tensor loss;
      {
        std::optional<CpuAutocast> on;
        if (autocast) on.emplace();
        const auto between = sgdph::nn::functional::conv2d(inputs, weights[0], {}).tanh();
        loss = sgdph::nn::functional::conv2d(between, weights[1], {}).to(torch::kFloat).square().mean();
      }
      const auto products = hessian_vector_product(gradients(loss, weights, true, true), weights, probes, false);
      return torch::cat({products[0].flatten(), products[1].flatten()}).to(torch::kFloat);
    };
    const auto expected = product(torch::kFloat, false);
    for (const bool autocast : {false, true}) {
      const auto found = product(autocast ? torch::kFloat : torch::kBFloat16, autocast);
      EXPECT_LT((found - expected).norm().item<double>(), 0.03 * expected.norm().item<double>())
          << channels << autocast;
    }
  }
}

TEST(Autocast, OurBatchNormComputesInFloat32AndKeepsTheInputsType) {
  torch::manual_seed(1);
  const auto inputs = torch::randn({4, 3, 6, 6}).to(torch::kBFloat16),
             residual = torch::randn({4, 3, 6, 6}).to(torch::kBFloat16);
  sgdph::nn::BatchNormReLU2d ours(3), wide(3);
  const CpuAutocast on;
  const auto found = ours(inputs, residual);
  EXPECT_EQ(found.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(torch::equal(found, wide(inputs.to(torch::kFloat), residual.to(torch::kFloat)).to(torch::kBFloat16)));
  EXPECT_TRUE(torch::equal(ours->running_var, wide->running_var));
  EXPECT_EQ(ours->running_var.scalar_type(), torch::kFloat32);
}

TEST(Autocast, ANetworkOfOurLayersTrainsAsInFloat32) {
  const auto train = [](bool autocast) {
    torch::manual_seed(2);
    nn::Sequential body(
        sgdph::nn::Conv2d(nn::Conv2dOptions(2, 8, 3).padding(1).bias(false)), sgdph::nn::BatchNormReLU2d(8),
        sgdph::nn::Conv2d(nn::Conv2dOptions(8, 8, 3).padding(1).bias(false)), sgdph::nn::BatchNorm2d(8), nn::ReLU(),
        WeightNormConv2d(nn::Conv2dOptions(8, 8, 1)), nn::AdaptiveAvgPool2d(1), nn::Flatten(), WeightNormLinear(8, 3));
    SGDPH optimizer(*body, SGDPHOptions(0.05).refresh(Refresh::All));
    const auto inputs = torch::randn({32, 2, 8, 8});
    const auto labels = inputs.mean({1, 2, 3}).gt(0).to(torch::kLong);
    double loss = 0;
    for (int step = 0; step < 60; ++step) {
      loss = train_step(optimizer, [&] {
        std::optional<CpuAutocast> on;
        if (autocast) on.emplace();
        return nn::functional::cross_entropy(body->forward(inputs).to(torch::kFloat), labels);
      });
    }
    for (const auto& block : optimizer.last_step().blocks_refreshed) {
      EXPECT_EQ(block.estimate.scalar_type(), torch::kFloat32);
    }
    EXPECT_GE(optimizer.last_step().blocks_refreshed.size(), 6);
    return loss;
  };
  const double expected = train(false), found = train(true);
  EXPECT_LT(expected, 0.6);
  EXPECT_NEAR(found, expected, 0.05);
}

}  // namespace
}  // namespace sgdph::test::low_precision_test
