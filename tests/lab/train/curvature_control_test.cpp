#include "optimizers/training_optimizer.h"
#include "support/checks.h"
#include "train/resolve.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace sgdph::lab::train::curvature_control_test {
namespace {

using test::contains;
using test::error_of;

settings::Settings with_control(const std::string& control) {
  settings::Settings settings;
  settings.optimizer["curvature_control"] = control;
  settings.optimizer["lr_so"] = 0.01;
  return settings;
}

TEST(CurvatureControl, IsOffByDefault) {
  const auto values = optimizers::resolve_optimizer(optimizers::kOwnOptimizer, {});
  EXPECT_EQ(values.at(optimizers::kCurvatureControl), optimizers::kNoControl);
  EXPECT_EQ(values.at(optimizers::kBlockMultiplier), optimizers::kPlainMultiplier);
  EXPECT_FALSE(optimizers::curvature_control(values));
}

TEST(CurvatureControl, BlockMeanKeepsTheMeanAndNothingElse) {
  const auto filter = optimizers::curvature_control(resolve(with_control(optimizers::kBlockMean)).optimizer);
  const auto curvature = torch::tensor({1., 2., 6.}, torch::kFloat64);
  EXPECT_TRUE(torch::equal(filter(curvature), torch::full({3}, 3., torch::kFloat64)));
}

TEST(CurvatureControl, ConstantMakesOneMultiplierForAllBlocks) {
  auto settings = with_control(optimizers::kConstantMultiplier);
  EXPECT_EQ(resolve(settings).optimizer["block_multiplier"], 1);
  settings.optimizer["block_multiplier"] = 4;
  const auto filter = optimizers::curvature_control(resolve(settings).optimizer);
  for (const auto& curvature : {torch::tensor({1., 2., 6.}), torch::tensor({1e-4, 50.})}) {
    EXPECT_TRUE(torch::allclose(0.01 / filter(curvature), torch::full_like(curvature, 4)));
  }
}

TEST(CurvatureControl, AMultiplierWithoutItsControlIsRefused) {
  for (const auto* control : {optimizers::kNoControl, optimizers::kBlockMean}) {
    auto settings = with_control(control);
    settings.optimizer["block_multiplier"] = 2;
    EXPECT_TRUE(contains(error_of([&] { resolve(settings); }), "--block-multiplier"));
  }
}

TEST(CurvatureControl, ARunStoredBeforeThereWasOneIsTheSameRun) {
  const auto now = resolve(settings::Settings());
  auto before = now;
  before.optimizer.erase(optimizers::kCurvatureControl);
  EXPECT_EQ(error_of([&] { check_same_run(before, now); }), "");
  EXPECT_TRUE(contains(
      error_of([&] { check_same_run(before, resolve(with_control(optimizers::kBlockMean))); }), "in this run"));
}

/// One step of the lab's SGD-PH on 1/2 sum(h w^2), whose blocks (the norm's gain and shift) have curvature h: how far
/// the gain moved, relative to its gradient.
at::Tensor gain_step(settings::Settings settings) {
  settings.optimizer["lr"] = 0.1;
  settings.optimizer["momentum"] = 0.;
  settings.optimizer["refresh"] = "all";
  settings.optimizer["shift_guard"] = false;
  settings.optimizer["hessian_momentum"] = 0.;
  torch::nn::Sequential model(torch::nn::BatchNorm2d(3));
  model->to(torch::kFloat64);
  const auto optimizer = optimizers::make_optimizer(*model, settings.opt, resolve(settings).optimizer, settings.seed);
  const auto gain = model->named_parameters()["0.weight"];
  const auto before = gain.detach().clone();
  const auto h = torch::tensor({1., 2., 6.}, torch::kFloat64);
  at::Tensor loss = torch::zeros({}, torch::kFloat64);
  for (const auto& parameter : model->parameters()) loss = loss + 0.5 * (h * parameter.square()).sum();
  optimizer->backward(loss);
  EXPECT_TRUE(optimizer->step());
  return (before - gain.detach()) / (0.1 * h * before);
}

TEST(CurvatureControl, TheLabsOptimizerTakesItsStepAccordingly) {
  const auto h = torch::tensor({1., 2., 6.}, torch::kFloat64);
  const auto eps = 1e-4;
  EXPECT_TRUE(torch::allclose(gain_step(with_control(optimizers::kNoControl)), 0.01 / (h + eps), 1e-6));
  EXPECT_TRUE(
      torch::allclose(gain_step(with_control(optimizers::kBlockMean)), torch::full_like(h, 0.01 / (3 + eps)), 1e-6));
  auto constant = with_control(optimizers::kConstantMultiplier);
  constant.optimizer[optimizers::kBlockMultiplier] = 0.25;
  EXPECT_TRUE(torch::allclose(gain_step(constant), torch::full_like(h, 0.25), 1e-9));
}

}  // namespace
}  // namespace sgdph::lab::train::curvature_control_test
