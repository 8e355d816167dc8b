// What a step of any optimizer of ours does with gradients it cannot use: nothing, and it says so.

#include <sgdph/catalogue.h>

#include "support/training.h"

#include <c10/core/InferenceMode.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

namespace sgdph::test::step_test {
namespace {

/// A matrix, a block and the last 1-D parameter under a loss that is curved in each.
class Step : public testing::TestWithParam<std::string> {
 protected:
  Step() {
    parameters = {
        torch::tensor({{1.0, -2.0}, {0.5, 3.0}}, torch::kFloat64).requires_grad_(true), leaf({0.7, -0.4}),
        leaf({0.1, 0.2})};
    made = make_optimizer(GetParam(), parameters, {{"lr", 0.01}, {"weight_decay", 0.1}});
    optimizer = dynamic_cast<OptimizerBase*>(made.get());
    for (int i = 0; i < 3; ++i) train_step(*made, [&] { return loss(); });
    EXPECT_TRUE(optimizer->last_step().applied);
    EXPECT_EQ(optimizer->last_step().step, 3);
    EXPECT_EQ(optimizer->last_step().non_finite, 0);
    EXPECT_EQ(optimizer->last_step().rejected_estimates, 0);
  }

  at::Tensor loss() {
    at::Tensor sum = torch::zeros({}, torch::kFloat64);
    for (const auto& parameter : parameters) sum = sum + parameter.pow(4).sum() + parameter.square().sum();
    return sum + parameters[1].sum().square();
  }

  /// Everything a step may change.
  std::string all() const {
    std::stringstream archive;
    torch::save(*made, archive);
    torch::save(parameters, archive);
    return archive.str();
  }

  /// A step whose gradients are spoilt after backward.
  template <class Spoil>
  void step_with(const Spoil& spoil) {
    made->zero_grad();
    run_backward(*made, loss());
    spoil();
    made->step();
  }

  Parameters parameters;
  std::unique_ptr<torch::optim::Optimizer> made;
  OptimizerBase* optimizer = nullptr;
};

TEST_P(Step, ANonFiniteGradientLeavesParametersAndStateAsTheyWere) {
  const auto before = all();
  for (const double poison :
       {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    step_with([&] { parameters[0].mutable_grad().index_put_({1}, poison); });
    EXPECT_FALSE(optimizer->last_step().applied);
    EXPECT_EQ(optimizer->last_step().non_finite, 2);
    EXPECT_EQ(optimizer->last_step().step, 3);
    EXPECT_EQ(all(), before) << "something changed with " << poison;
  }
  train_step(*made, [&] { return loss(); });
  EXPECT_TRUE(optimizer->last_step().applied);
  EXPECT_EQ(optimizer->last_step().non_finite, 0);
  EXPECT_EQ(optimizer->last_step().step, 4);
  EXPECT_NE(all(), before);
}

TEST_P(Step, ARejectedStepLeavesNoTrace) {
  // The same steps with a rejected one between them and without.
  auto other_parameters = parameters;
  for (auto& parameter : other_parameters) parameter = parameter.detach().clone().requires_grad_(true);
  const auto other = make_optimizer(GetParam(), other_parameters);
  std::stringstream file;
  torch::save(*made, file);
  torch::load(*other, file);

  step_with([&] { parameters[1].mutable_grad().fill_(std::nan("")); });
  ASSERT_FALSE(optimizer->last_step().applied);
  const auto other_loss = [&] {
    std::swap(parameters, other_parameters);
    const auto value = loss();
    std::swap(parameters, other_parameters);
    return value;
  };
  for (int i = 0; i < 3; ++i) {
    train_step(*made, [&] { return loss(); });
    train_step(*other, other_loss);
  }
  for (size_t i = 0; i < parameters.size(); ++i) EXPECT_TRUE(torch::equal(parameters[i], other_parameters[i])) << i;
}

TEST_P(Step, AFrozenParametersOldGradientStopsNothing) {
  step_with([&] {
    parameters[0].set_requires_grad(false);
    parameters[0].mutable_grad().fill_(std::nan(""));
  });
  EXPECT_TRUE(optimizer->last_step().applied);
}

TEST_P(Step, AGradientThatDoesNotFitIsRefusedBeforeAnythingChanges) {
  // The last parameter's, so that a step that looks at one after the other would have moved the rest.
  const auto before = all();
  const auto refuse = [&](const at::Tensor& gradient, const std::vector<std::string>& texts) {
    const auto message = error_of([&] { step_with([&] { parameters[2].mutable_grad() = gradient; }); });
    for (const auto& text : texts) EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_NE(message.find("group 0, parameter 2"), std::string::npos) << message;
    EXPECT_EQ(all(), before) << "something changed";
    EXPECT_FALSE(optimizer->last_step().applied && optimizer->last_step().step > 3);
    parameters[2].mutable_grad().reset();
  };
  refuse(torch::ones({3}, torch::kFloat64), {"shape [3]", "[2]"});
  refuse(torch::ones({2}, torch::dtype(torch::kFloat64).device(torch::kMeta)), {"meta", "cpu"});
  refuse(torch::ones({2}, torch::kComplexDouble), {"ComplexDouble", "Double"});
  refuse(torch::ones({2}, torch::kFloat64).to_sparse(), {"sparse(false)"});
}

TEST_P(Step, SparseGradientsOfAPlainBackwardAreRefusedInASentence) {
  auto table = torch::ones({5, 2}, torch::kFloat64).requires_grad_(true);
  const auto fresh = make_optimizer(GetParam(), Parameters{table});
  torch::embedding(table, torch::tensor({1, 3}), /*padding_idx=*/-1, /*scale_grad_by_freq=*/false, /*sparse=*/true)
      .square()
      .sum()
      .backward();
  ASSERT_TRUE(table.grad().is_sparse());
  EXPECT_ERROR(fresh->step(), "sparse gradients are not supported", "sparse(false)", "group 0, parameter 0");
  EXPECT_TRUE(torch::equal(table.detach(), torch::ones({5, 2}, torch::kFloat64)));
}

TEST_P(Step, InInferenceModeIsRefused) {
  const auto before = all();
  made->zero_grad();
  run_backward(*made, loss());
  {
    const c10::InferenceMode mode;
    EXPECT_ERROR(made->step(), "InferenceMode");
  }
  EXPECT_EQ(all(), before);
}

TEST_P(Step, LargeFiniteGradientsAreNotTakenForNonFinite) {
  step_with([&] { parameters[0].mutable_grad().fill_(std::numeric_limits<double>::max()); });
  EXPECT_EQ(optimizer->last_step().non_finite, 0) << "the sum of the gradient overflows, no value does";
  EXPECT_TRUE(optimizer->last_step().applied);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Step, testing::ValuesIn(our_optimizers()), [](const auto& info) {
  auto name = info.param;
  for (auto& letter : name) letter = letter == '-' ? '_' : letter;
  return name;
});

}  // namespace
}  // namespace sgdph::test::step_test
