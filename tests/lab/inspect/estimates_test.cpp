#include "inspect/estimates.h"

#include "base/error.h"
#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace sgdph::lab::inspect::estimates_test {
namespace {

using test::Problem;

HessianBlock measured(Problem& problem, const Block& block, int64_t max_channels = 0) {
  return measure_hessian([&] { return problem.loss(); }, problem.model->parameters(), block, max_channels, [] {});
}

Probe probe_named(const std::string& name) {
  return name == "ones" ? Probe::Ones : name == "hadamard" ? Probe::Hadamard : Probe::Rademacher;
}

/// What is held with one of the probes, whose order is the list's.
const HeldEstimate& with_probe(const std::vector<HeldEstimate>& held, const std::string& probe) {
  const auto found = std::find_if(held.begin(), held.end(), [&](const auto& one) { return one.probe == probe; });
  if (found == held.end()) throw std::out_of_range("nothing is held with the probe " + probe);
  return *found;
}

/// What the optimizer divides the momentum of every block by after so many steps on the loss itself.
std::vector<at::Tensor> divisors_in_training(Problem& problem, const SGDPHOptions& options, int64_t steps) {
  SGDPH optimizer(*problem.model, options);
  std::vector<at::Tensor> divisors;
  optimizer.set_curvature_filter([&](const at::Tensor& curvature) {
    divisors.push_back(curvature.clone());
    return curvature;
  });
  for (int64_t step = 0; step < steps; ++step) {
    divisors.clear();
    test::train_step(optimizer, [&] { return problem.loss(); });
  }
  for (auto& parameter : problem.model->parameters()) parameter.mutable_grad().reset();
  return divisors;
}

class Estimates : public testing::TestWithParam<std::string> {};

TEST_P(Estimates, AreWhatTheOptimizerHoldsAfterAsManyStepsOnTheLossItself) {
  for (const int64_t steps : {1, 5, 12}) {
    for (const auto rule : {Rule::Reference, Rule::Paper}) {
      auto problem = test::make_problem(GetParam());
      settings::Settings settings;
      settings.optimizer["rule"] = rule == Rule::Paper ? "paper" : "reference";
      settings.optimizer["probe_cycle"] = 4;
      settings.seed = 11;
      const auto blocks = blocks_of(*problem.model, false);
      for (const auto* name : {"ones", "hadamard", "rademacher"}) {
        const auto options = SGDPHOptions(0).rule(rule).probe(probe_named(name)).refresh(Refresh::All).probe_cycle(4);
        const auto expected = divisors_in_training(problem, SGDPHOptions(options).shift_guard(false).seed(11), steps);
        ASSERT_EQ(expected.size(), blocks.size());
        RunningEstimates fresh(*problem.model, settings, false);
        for (size_t i = 0; i < blocks.size(); ++i) {
          const auto hessian = measured(problem, blocks[i]);
          bool found = false;
          for (const auto& held : fresh.of(hessian, steps)) {
            if (held.probe != name) continue;
            found = true;
            EXPECT_TRUE(torch::allclose(held.divisor, expected[i], 1e-8, 1e-12)) << name << ", " << blocks[i].name;
            if (held.probe == "ones") {
              EXPECT_TRUE(torch::allclose(held.estimate, hessian.row_sum(), 1e-8, 1e-12));
            }
          }
          EXPECT_TRUE(found) << name;
        }
      }
    }
  }
}

TEST_P(Estimates, OfALongEnoughHadamardCycleAreTheDiagonal) {
  auto problem = test::make_problem(GetParam());
  settings::Settings settings;
  settings.optimizer["probe_cycle"] = 8;
  RunningEstimates estimates(*problem.model, settings, false);
  for (const auto& block : blocks_of(*problem.model, false)) {
    const auto hessian = measured(problem, block);
    const auto held = estimates.of(hessian, 8);
    ASSERT_EQ(held.size(), 3U);
    const auto& diagonal = with_probe(held, "hadamard").estimate;
    EXPECT_TRUE(torch::allclose(diagonal, hessian.diagonal(), 1e-8, 1e-12)) << block.name;
    const auto& row_sum = with_probe(held, "ones").estimate;
    EXPECT_FALSE(torch::allclose(row_sum, hessian.diagonal(), 1e-2, 1e-6)) << block.name;
  }
}

TEST_P(Estimates, OfSomeChannelsAreThoseOfTheWholeBlock) {
  auto problem = test::make_problem(GetParam());
  RunningEstimates one(*problem.model, {}, false);
  RunningEstimates two(*problem.model, {}, false);
  for (const auto& block : blocks_of(*problem.model, false)) {
    const auto whole = one.of(measured(problem, block), 9);
    const auto part_of = measured(problem, block, 2);
    const auto part = two.of(part_of, 9);
    for (size_t i = 0; i < whole.size(); ++i) {
      const auto expected = whole[i].estimate.index_select(0, torch::tensor(part_of.channels));
      EXPECT_TRUE(torch::allclose(part[i].estimate, expected, 1e-8, 1e-12)) << block.name << ", " << whole[i].probe;
      EXPECT_FALSE(part[i].divisor.defined());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Estimates, testing::ValuesIn(test::kProblemKinds), [](const auto& info) {
  return info.param;
});

TEST(RunningEstimates, OfRademacherNearTheDiagonalAndMoveNothing) {
  auto problem = test::make_problem("BatchNorm");
  settings::Settings settings;
  settings.optimizer["hessian_momentum"] = 0.999;
  RunningEstimates estimates(*problem.model, settings, false);
  const auto block = blocks_of(*problem.model, false).front();
  const auto before = block.parameter.detach().clone();
  const auto hessian = measured(problem, block);
  const auto off = hessian.rows - hessian.diagonal().diag();
  const auto all = estimates.of(hessian, 2000);
  const auto& held = with_probe(all, "rademacher");
  // The weights of the average are as good as about 1500 equal ones.
  const auto deviation = off.square().sum(1).div(1500).sqrt();
  EXPECT_TRUE((held.estimate - hessian.diagonal()).abs().le(5 * deviation).all().item<bool>());
  EXPECT_TRUE(torch::equal(block.parameter, before));
  EXPECT_FALSE(block.parameter.grad().defined());
}

TEST(RunningEstimates, OfTheLastParameterAreNotThereUnderThePublishedRule) {
  auto problem = test::make_problem("BatchNorm");
  RunningEstimates estimates(*problem.model, {}, true);
  const auto blocks = blocks_of(*problem.model, true);
  EXPECT_EQ(estimates.of(measured(problem, blocks.front()), 2).size(), 3U);
  EXPECT_TRUE(estimates.of(measured(problem, blocks.back()), 2).empty());
}

TEST(RunningEstimates, RefuseWhatTheOptimizerRefuses) {
  test::NetA model;
  settings::Settings settings;
  settings.optimizer["probe_cycle"] = 6;
  EXPECT_THROW(RunningEstimates(*model, settings, false), UserError);
}

}  // namespace
}  // namespace sgdph::lab::inspect::estimates_test
