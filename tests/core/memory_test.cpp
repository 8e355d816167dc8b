// Measuring curvature on every step leaks nothing, and needs no more than the measurement itself.

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <malloc.h>
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

/// Starts the peak anew; false where the system does not allow it.
bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  return static_cast<bool>(file << "5" << std::flush);
}

double peak_megabytes() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    double kilobytes = 0;
    if (word == "VmHWM:" && file >> kilobytes) return kilobytes * 1024 / 1e6;
  }
  return 0;
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

/// What a few steps need at most above the parameters. Matrices of 96 MB together and norm layers between them, on two
/// rows: a product needs a few of the matrices, gradients held twice would be all of them.
template <class Make>
double peak_of_steps(const Make& make, bool set_to_none) {
  torch::manual_seed(1);
  torch::nn::Sequential model;
  for (int i = 0; i < 24; ++i) {
    model->push_back(torch::nn::Linear(torch::nn::LinearOptions(1000, 1000).bias(false)));
    model->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({1000})));
  }
  const auto inputs = torch::randn({2, 1000});
  malloc_trim(0);
  const double before = resident_megabytes();
  if (!reset_peak()) return -1;
  {
    auto optimizer = make(model);
    for (int t = 0; t < 8; ++t) {
      model->zero_grad(set_to_none);
      run_backward(*optimizer, model->forward(inputs).square().mean());
      optimizer->step();
    }
  }
  return peak_megabytes() - before;
}

TEST(Memory, APeakIsThatOfSgdAndTheMeasurement) {
  const auto sgd = [](torch::nn::Sequential& model) {
    return std::make_unique<torch::optim::SGD>(model->parameters(), torch::optim::SGDOptions(1e-4).momentum(0.9));
  };
  const auto sgd_ph = [](torch::nn::Sequential& model) { return std::make_unique<SGDPH>(model, SGDPHOptions(1e-4)); };
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // what is freed is gone at once
  for (const bool set_to_none : {false, true}) {
    const double plain = peak_of_steps(sgd, set_to_none), ours = peak_of_steps(sgd_ph, set_to_none);
    if (plain < 0) GTEST_SKIP() << "the peak cannot be reset here";
    EXPECT_GT(plain, 190) << "gradients and momentum";
    EXPECT_LT(ours, plain + 20) << "gradients are held twice";
  }
}

}  // namespace
}  // namespace sgdph::test::memory_test
