// Every optimizer, at a sensible learning rate, fits the shared problems.

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

namespace sgdph::test::convergence_test {
namespace {

using Make = std::function<std::unique_ptr<torch::optim::Optimizer>(torch::nn::Sequential& model)>;

template <class Optimizer, class Options>
std::pair<std::string, Make> entry(const std::string& name, const Options& options) {
  return {name, [options](torch::nn::Sequential& model) -> std::unique_ptr<torch::optim::Optimizer> {
            return std::make_unique<Optimizer>(model->parameters(), options);
          }};
}

std::vector<std::pair<std::string, Make>> optimizers() {
  const auto base = SGDPHOptions(0.05).lr_so(1e-2);
  return {
      entry<SGDPH>("SgdPhReference", base),
      entry<SGDPH>("SgdPhPaper", SGDPHOptions(0.5).rule(Rule::Paper).lr_so(1e-2)),
      entry<SGDPH>("SgdPhRademacher", SGDPHOptions(base).probe(Probe::Rademacher)),
      entry<SGDPH>("SgdPhHadamard", SGDPHOptions(base).probe(Probe::Hadamard).refresh(Refresh::All)),
      entry<SGDPH>("SgdPhJoint", SGDPHOptions(base).probe(Probe::Rademacher).refresh(Refresh::Joint)),
      entry<AdaBelief>("AdaBelief", AdaBeliefOptions(0.02)),
      entry<AdaHessian>("AdaHessian", AdaHessianOptions(0.02)),
      entry<Apollo>("Apollo", ApolloOptions(0.002).warmup(10)),
  };
}

class Convergence : public testing::TestWithParam<std::pair<std::string, Make>> {};

TEST_P(Convergence, FitsEveryKindOfProblem) {
  for (const auto& kind : kProblemKinds) {
    auto problem = make_problem(kind);
    const auto optimizer = GetParam().second(problem.model);
    const double before = problem.loss().item<double>();
    for (int step = 0; step < 300; ++step) train_step(*optimizer, [&] { return problem.loss(); });
    EXPECT_LT(problem.loss().item<double>(), 0.2 * before) << kind << " from " << before;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Convergence, testing::ValuesIn(optimizers()), [](const auto& info) {
  return info.param.first;
});

}  // namespace
}  // namespace sgdph::test::convergence_test
