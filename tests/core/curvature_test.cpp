// What each probe measures, against a brute-force Hessian, on every kind of block.

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

namespace sgdph::test::curvature_test {
namespace {

/// Options that measure every block on every step and move nothing.
SGDPHOptions frozen(Probe probe) {
  return SGDPHOptions(0).rule(Rule::Paper).probe(probe).refresh(Refresh::All).shift_guard(false);
}

class Curvature : public testing::TestWithParam<std::string> {
 protected:
  Problem problem = make_problem(GetParam());
  std::function<at::Tensor()> loss = [this] { return problem.loss(); };
};

TEST_P(Curvature, OnesGivesTheRowSumOfEveryBlock) {
  SGDPH optimizer(*problem.model, frozen(Probe::Ones));
  train_step(optimizer, loss);
  const auto& refreshed = optimizer.last_step().blocks_refreshed;
  EXPECT_EQ(refreshed.size(), optimizer.partition().blocks());
  EXPECT_GE(refreshed.size(), 2);
  for (const auto& block : refreshed) {
    const auto hessian = brute_force_hessian(problem.loss(), {block.parameter});
    EXPECT_TRUE(torch::allclose(block.estimate, hessian.sum(1), 1e-10, 1e-12)) << block.name;
    EXPECT_FALSE(torch::allclose(hessian.sum(1), hessian.diagonal(), 1e-3, 1e-6)) << block.name << " is diagonal";
  }
}

TEST_P(Curvature, OneBlockPerStepGivesTheSameRowSums) {
  SGDPH optimizer(*problem.model, SGDPHOptions(0).shift_guard(false));
  const auto blocks = optimizer.partition().blocks();
  for (size_t step = 0; step < blocks; ++step) {
    train_step(optimizer, loss);
    ASSERT_EQ(optimizer.last_step().blocks_refreshed.size(), 1);
    EXPECT_EQ(optimizer.last_step().products, 1);
    const auto& block = optimizer.last_step().blocks_refreshed[0];
    const auto hessian = brute_force_hessian(problem.loss(), {block.parameter});
    EXPECT_TRUE(torch::allclose(block.estimate, hessian.sum(1), 1e-10, 1e-12)) << block.name;
  }
}

TEST_P(Curvature, HadamardCycleLeavesExactlyTheCouplingsOfChannelsThatAgreeModuloIt) {
  for (const int64_t cycle : {1, 2, 4, 8, 16}) {
    SGDPH optimizer(*problem.model, frozen(Probe::Hadamard).probe_cycle(cycle));
    for (int64_t step = 0; step < cycle; ++step) train_step(optimizer, loss);
    for (const auto& block : optimizer.last_step().blocks_refreshed) {
      const auto hessian = brute_force_hessian(problem.loss(), {block.parameter});
      const auto channels = hessian.size(0);
      const auto residue = torch::arange(channels).remainder(cycle);
      const auto kept = residue.unsqueeze(0).eq(residue.unsqueeze(1)).to(torch::kFloat64);
      const auto& state = state_of<SGDPHParamState>(optimizer, block.parameter);
      EXPECT_TRUE(torch::allclose(state.curvature(), (hessian * kept).sum(1), 1e-10, 1e-12))
          << block.name << ", cycle " << cycle;
      if (cycle >= channels) {
        EXPECT_TRUE(torch::allclose(state.curvature(), hessian.diagonal(), 1e-10, 1e-12)) << block.name;
      }
    }
  }
}

TEST_P(Curvature, HadamardKeepsTheLastCompleteCycleWhileTheNextIsUnderWay) {
  SGDPH optimizer(*problem.model, frozen(Probe::Hadamard).probe_cycle(4));
  const auto curvature = [&] {
    return state_of<SGDPHParamState>(optimizer, optimizer.last_step().blocks_refreshed[0].parameter).curvature();
  };
  at::Tensor sum;
  for (int64_t step = 1; step <= 4; ++step) {
    train_step(optimizer, loss);
    const auto estimate = optimizer.last_step().blocks_refreshed[0].estimate;
    sum = sum.defined() ? sum + estimate : estimate;
    EXPECT_TRUE(torch::allclose(curvature(), sum / static_cast<double>(step))) << "mean of what there is, " << step;
  }
  const auto complete = curvature().clone();
  // Another batch from here on: the estimate changes only when its cycle is complete.
  problem.inputs = problem.inputs + 1;
  for (int64_t step = 5; step < 8; ++step) {
    train_step(optimizer, loss);
    EXPECT_TRUE(torch::equal(curvature(), complete)) << "step " << step;
  }
  train_step(optimizer, loss);
  EXPECT_FALSE(torch::allclose(curvature(), complete));
}

TEST_P(Curvature, RademacherConvergesToTheDiagonal) {
  constexpr int kSteps = 400;
  SGDPH optimizer(*problem.model, frozen(Probe::Rademacher));
  std::map<std::string, at::Tensor> sums;
  for (int step = 0; step < kSteps; ++step) {
    train_step(optimizer, loss);
    for (const auto& block : optimizer.last_step().blocks_refreshed) {
      auto& sum = sums[block.name];
      sum = sum.defined() ? sum + block.estimate : block.estimate;
    }
  }
  for (const auto& block : optimizer.last_step().blocks_refreshed) {
    const auto hessian = brute_force_hessian(problem.loss(), {block.parameter});
    const auto couplings = hessian - hessian.diagonal().diag();
    // The estimate's variance is the sum of the squared couplings.
    const auto deviation = couplings.square().sum(1).div(kSteps).sqrt();
    const auto error = (sums[block.name] / kSteps - hessian.diagonal()).abs();
    EXPECT_TRUE(error.le(5 * deviation + 1e-12).all().item<bool>()) << block.name << "\n" << error / deviation;
    EXPECT_GT(error.max().item<double>(), 0) << block.name << ": no noise, so the probe was not random";
  }
}

TEST_P(Curvature, JointEqualsTheFullProduct) {
  SGDPH optimizer(*problem.model, frozen(Probe::Rademacher).refresh(Refresh::Joint));
  std::vector<at::Tensor> probes;
  optimizer.set_probe_source([&](const at::Tensor& parameter) {
    probes.push_back(torch::randint(2, parameter.sizes(), torch::kFloat64) * 2 - 1);
    return probes.back();
  });
  train_step(optimizer, loss);
  EXPECT_EQ(optimizer.last_step().products, 1);
  const auto& refreshed = optimizer.last_step().blocks_refreshed;
  ASSERT_EQ(refreshed.size(), probes.size());
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> estimates;
  for (const auto& block : refreshed) {
    parameters.push_back(block.parameter);
    estimates.push_back(block.estimate);
  }
  const auto z = torch::cat(probes);
  EXPECT_TRUE(
      torch::allclose(torch::cat(estimates), z * brute_force_hessian(problem.loss(), parameters).mv(z), 1e-10, 1e-12));
}

TEST_P(Curvature, UpdateCurvatureMeasuresTheSameAsBackward) {
  SGDPH first(*problem.model, frozen(Probe::Ones));
  train_step(first, loss);
  SGDPH second(*problem.model, frozen(Probe::Ones));
  second.zero_grad();
  second.update_curvature(problem.loss());
  for (const auto& parameter : problem.model->parameters()) {
    EXPECT_TRUE(!parameter.grad().defined() || !parameter.grad().any().item<bool>()) << "gradients were touched";
  }
  problem.loss().backward();
  second.step();
  ASSERT_EQ(first.last_step().blocks_refreshed.size(), second.last_step().blocks_refreshed.size());
  for (size_t i = 0; i < first.last_step().blocks_refreshed.size(); ++i) {
    EXPECT_TRUE(
        torch::equal(first.last_step().blocks_refreshed[i].estimate, second.last_step().blocks_refreshed[i].estimate));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Curvature, testing::ValuesIn(kProblemKinds), [](const auto& info) {
  return info.param;
});

}  // namespace
}  // namespace sgdph::test::curvature_test
