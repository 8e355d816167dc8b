// Learning-rate schedules: closed forms, warm-up, resume.

#include "support/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

namespace sgdph::test::schedulers_test {
namespace {

double lr_of(const torch::optim::Optimizer& optimizer, size_t group = 0) {
  return optimizer.param_groups()[group].options().get_lr();
}

/// The learning rates before the first and after each of `steps` calls.
template <class Scheduler>
std::vector<double> curve(torch::optim::Optimizer& optimizer, Scheduler& scheduler, int steps) {
  std::vector<double> lrs{lr_of(optimizer)};
  for (int i = 0; i < steps; ++i) {
    scheduler.step();
    lrs.push_back(lr_of(optimizer));
  }
  return lrs;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-15) << "after " << i << " steps";
}

class Schedulers : public testing::Test {
 protected:
  SGDPH optimizer{Parameters{leaf({1})}, SGDPHOptions(0.8)};
};

TEST_F(Schedulers, StepMultipliesEveryStepSize) {
  StepLR scheduler(optimizer, 2, 0.5);
  expect_near(curve(optimizer, scheduler, 5), {0.8, 0.8, 0.4, 0.4, 0.2, 0.2});
}

TEST_F(Schedulers, MultiStepMultipliesAtEachMilestone) {
  MultiStepLR scheduler(optimizer, {1, 4}, 0.1);
  expect_near(curve(optimizer, scheduler, 5), {0.8, 0.08, 0.08, 0.08, 0.008, 0.008});
}

TEST_F(Schedulers, CosineFallsToItsMinimumAndStaysThere) {
  CosineLR scheduler(optimizer, 4, 0.2);
  const double half = std::cos(std::acos(-1.0) / 4);
  expect_near(curve(optimizer, scheduler, 5), {0.8, 0.5 + 0.3 * half, 0.5, 0.5 - 0.3 * half, 0.2, 0.2});
}

TEST_F(Schedulers, LinearFallsToItsMinimumAndStaysThere) {
  LinearLR scheduler(optimizer, 4, 0.2);
  expect_near(curve(optimizer, scheduler, 5), {0.8, 0.65, 0.5, 0.35, 0.2, 0.2});
}

TEST_F(Schedulers, WarmupIsLinearAndTheScheduleFollowsIt) {
  StepLR scheduler(optimizer, 2, 0.5, Warmup{4, 0.5});
  expect_near(curve(optimizer, scheduler, 7), {0.4, 0.5, 0.6, 0.7, 0.8, 0.8, 0.4, 0.4});
}

TEST_F(Schedulers, WarmupWorksForEveryKind) {
  SGDPH other{Parameters{leaf({1})}, SGDPHOptions(0.8)};
  MultiStepLR steps(optimizer, {2}, 0.5, Warmup{2, 0});
  CosineLR cosine(other, 2, 0, Warmup{2, 0.25});
  expect_near(curve(optimizer, steps, 4), {0, 0.4, 0.8, 0.8, 0.4});
  expect_near(curve(other, cosine, 4), {0.2, 0.5, 0.8, 0.4, 0});
}

TEST_F(Schedulers, EveryGroupKeepsItsOwnBaseAlsoOneAddedLater) {
  Groups groups;
  groups.push_back(group({leaf({1})}, SGDPHOptions(0.8)));
  groups.push_back(group({leaf({1})}, SGDPHOptions(0.08)));
  SGDPH two(groups, SGDPHOptions(0.8));
  StepLR scheduler(two, 1, 0.5);
  scheduler.step();
  EXPECT_DOUBLE_EQ(lr_of(two, 0), 0.4);
  EXPECT_DOUBLE_EQ(lr_of(two, 1), 0.04);
  two.add_param_group(group({leaf({1})}, SGDPHOptions(0.4)));
  scheduler.step();
  EXPECT_DOUBLE_EQ(lr_of(two, 2), 0.1) << "0.4 after two halvings";
}

TEST_F(Schedulers, DriveLibTorchsOwnOptimizersToo) {
  torch::optim::SGD sgd(Parameters{leaf({1})}, torch::optim::SGDOptions(1.0));
  CosineLR scheduler(sgd, 2);
  expect_near(curve(sgd, scheduler, 2), {1, 0.5, 0});
}

TEST_F(Schedulers, ResumeContinuesExactlyAlsoIntoOtherSettingsAndAChangedLearningRate) {
  StepLR whole(optimizer, 3, 0.3, Warmup{2, 0.1});
  for (int i = 0; i < 4; ++i) whole.step();
  optimizer.param_groups()[0].options().set_lr(0.123);
  std::stringstream file;
  torch::save(whole, file);

  SGDPH fresh{Parameters{leaf({1})}, SGDPHOptions(5)};
  StepLR resumed(fresh, 99, 0.9);
  torch::load(resumed, file);
  EXPECT_EQ(resumed.steps(), 4);
  EXPECT_EQ(lr_of(fresh), 0.123);
  for (int i = 0; i < 10; ++i) {
    whole.step();
    resumed.step();
    EXPECT_EQ(lr_of(fresh), lr_of(optimizer)) << "step " << i;
  }
}

TEST_F(Schedulers, ResumeWorksForMultiStepAndCosine) {
  SGDPH other{Parameters{leaf({1})}, SGDPHOptions(0.7)};
  SGDPH third{Parameters{leaf({1})}, SGDPHOptions(0.7)};
  MultiStepLR steps(optimizer, {2, 5}, 0.3);
  CosineLR cosine(other, 9, 0.01);
  for (int i = 0; i < 4; ++i) {
    steps.step();
    cosine.step();
  }
  std::stringstream a, b;
  torch::save(steps, a);
  torch::save(cosine, b);
  {
    MultiStepLR resumed(third, {}, 1);
    torch::load(resumed, a);
    resumed.step();
    steps.step();
    EXPECT_EQ(lr_of(third), lr_of(optimizer));
  }
  CosineLR resumed(third, 1);
  torch::load(resumed, b);
  resumed.step();
  cosine.step();
  EXPECT_EQ(lr_of(third), lr_of(other));
}

TEST_F(Schedulers, AnArchiveOfAnotherSchedulerIsRefusedAndChangesNothing) {
  CosineLR cosine(optimizer, 9);
  std::stringstream file, own;
  torch::save(cosine, file);
  torch::save(optimizer, own);
  StepLR step(optimizer, 2, 0.5);
  EXPECT_ERROR(torch::load(step, file), "StepLR", "CosineLR");
  EXPECT_ERROR(torch::load(step, own), "StepLR", "does not hold");
  EXPECT_EQ(step.steps(), 0);
  EXPECT_EQ(lr_of(optimizer), 0.8);
}

TEST_F(Schedulers, InvalidSettingsAreRefusedByName) {
  EXPECT_ERROR(StepLR(optimizer, 0), "step_size", "0");
  EXPECT_ERROR(StepLR(optimizer, 1, -1), "gamma", "-1");
  EXPECT_ERROR(MultiStepLR(optimizer, {3, 2}), "milestones");
  EXPECT_ERROR(CosineLR(optimizer, 0), "t_max");
  EXPECT_ERROR(LinearLR(optimizer, 0), "LinearLR", "t_max");
  EXPECT_ERROR(CosineLR(optimizer, 1, std::nan("")), "eta_min");
  EXPECT_ERROR(StepLR(optimizer, 1, 0.1, Warmup{-1, 0}), "warm-up steps");
  EXPECT_ERROR(StepLR(optimizer, 1, 0.1, Warmup{1, 1.5}), "warm-up start");
  EXPECT_EQ(lr_of(optimizer), 0.8);
}

}  // namespace
}  // namespace sgdph::test::schedulers_test
