// Measuring curvature on every step leaks nothing.

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <fstream>

namespace sgdph::test::memory_test {
namespace {

double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

using Step = std::function<void(torch::optim::Optimizer&, Problem&)>;

void plain_step(torch::optim::Optimizer& optimizer, Problem& problem) {
  train_step(optimizer, [&] { return problem.loss(); });
}

/// The memory at the end is that after 100 steps.
void expect_flat(
    int total, torch::optim::Optimizer& optimizer, Problem& problem, const char* what, const Step& step = plain_step) {
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) step(optimizer, problem);
  };
  steps(100);
  const double early = resident_megabytes();
  steps(total - 100);
  const double late = resident_megabytes();
  EXPECT_LE(late, early * 1.02) << what << ": from " << early << " to " << late << " MB";
  testing::Test::RecordProperty(what, std::to_string(late / early));
}

/// A batch large enough that a graph kept alive shows at once: about 1 MB of activations per step.
Problem large_batch() {
  auto problem = make_problem("BatchNorm", torch::kFloat32);
  problem.inputs = torch::randn({128, 2, 8, 8});
  problem.labels = torch::randint(4, {128}, torch::kLong);
  return problem;
}

/// With curvature on every step, in all ways of measuring it.
void expect_every_way_flat(int steps) {
  auto problem = large_batch();
  SGDPH cyclic(*problem.model, SGDPHOptions(1e-4));
  expect_flat(steps, cyclic, problem, "Cyclic");
  SGDPH all(*problem.model, SGDPHOptions(1e-4).rule(Rule::Paper));
  expect_flat(steps, all, problem, "All");
  SGDPH joint(*problem.model, SGDPHOptions(1e-4).probe(Probe::Rademacher).refresh(Refresh::Joint));
  expect_flat(steps, joint, problem, "Joint");
  AdaHessian adahessian(problem.model->parameters(), AdaHessianOptions(1e-4));
  expect_flat(steps, adahessian, problem, "AdaHessian");
  SGDPH separate(*problem.model, SGDPHOptions(1e-4));
  expect_flat(steps, separate, problem, "update_curvature", [](torch::optim::Optimizer& optimizer, Problem& p) {
    optimizer.zero_grad();
    const auto loss = p.loss();
    static_cast<SGDPH&>(optimizer).update_curvature(loss);
    loss.backward();
    optimizer.step();
  });
}

TEST(Memory, StaysFlatOverTwoHundredStepsWithCurvatureOnEveryStep) {
  expect_every_way_flat(200);
}

TEST(SlowMemory, StaysFlatOverAThousandStepsWithCurvatureOnEveryStep) {
  expect_every_way_flat(1000);
}

TEST(Memory, TheCheckSeesGraphsThatAreKept) {
  auto problem = large_batch();
  std::vector<at::Tensor> kept;
  kept.push_back(problem.loss());
  const double early = resident_megabytes();
  for (int i = 0; i < 100; ++i) kept.push_back(problem.loss());
  EXPECT_GT(resident_megabytes(), early * 1.02) << "a hundred kept graphs of a thousand steps would go unseen";
}

}  // namespace
}  // namespace sgdph::test::memory_test
