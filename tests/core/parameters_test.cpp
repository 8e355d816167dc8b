// Parameters come, go and change while an optimizer is at work: a state belongs to its own parameter.

#include <sgdph/catalogue.h>

#include "support/training.h"

#include <gtest/gtest.h>

#include <sstream>

namespace sgdph::test::parameters_test {
namespace {

at::Tensor matrix(int64_t seed) {
  torch::manual_seed(seed);
  return torch::randn({3, 2}, torch::kFloat64).requires_grad_(true);
}

at::Tensor copy(const at::Tensor& parameter) {
  return parameter.detach().clone().requires_grad_(true);
}

at::Tensor loss_of(torch::optim::Optimizer& optimizer) {
  auto sum = torch::zeros({}, torch::kFloat64);
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      sum = sum + parameter.pow(4).sum().to(torch::kFloat64) + parameter.square().sum().to(torch::kFloat64);
    }
  }
  return sum;
}

void step(torch::optim::Optimizer& optimizer) {
  train_step(optimizer, [&] { return loss_of(optimizer); });
}

class ParametersOf : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<torch::optim::Optimizer> make(const Parameters& parameters) const {
    return make_optimizer(GetParam(), parameters, {{"lr", 0.01}});
  }
};

TEST_P(ParametersOf, AReplacedOneLeavesNothingToItsSuccessor) {
  const auto optimizer = make({matrix(1), matrix(2)});
  auto& parameters = optimizer->param_groups()[0].params();
  step(*optimizer);
  for (int64_t i = 0; i < 50; ++i) {
    // The new one is likely to have the old one's address.
    parameters[1] = at::Tensor();
    parameters[1] = matrix(10 + i);
    const auto fresh = make({copy(parameters[0]), copy(parameters[1])});
    step(*optimizer);
    step(*fresh);
    ASSERT_TRUE(torch::equal(parameters[1], fresh->param_groups()[0].params()[1])) << "replacement " << i;
    ASSERT_EQ(optimizer->state().size(), 2) << "replacement " << i;
  }
}

TEST_P(ParametersOf, OneThatIsTakenOutAndPutBackKeepsItsState) {
  const Parameters all{matrix(1), matrix(2)};
  const Parameters others{copy(all[0]), copy(all[1])};
  const auto optimizer = make(all);
  const auto never_out = make(others);
  step(*optimizer);
  step(*never_out);
  auto& parameters = optimizer->param_groups()[0].params();
  parameters.pop_back();
  step(*optimizer);
  parameters.push_back(all[1]);
  step(*optimizer);
  // The other one's second parameter is frozen for a step.
  others[1].set_requires_grad(false);
  step(*never_out);
  others[1].set_requires_grad(true);
  step(*never_out);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(torch::equal(all[i], others[i])) << i;
}

TEST_P(ParametersOf, AStateThatIsClearedStartsAnew) {
  const auto optimizer = make({matrix(1), matrix(2)});
  step(*optimizer);
  const auto& parameters = optimizer->param_groups()[0].params();
  optimizer->state().clear();
  const auto fresh = make({copy(parameters[0]), copy(parameters[1])});
  step(*optimizer);
  step(*fresh);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(torch::equal(parameters[i], fresh->param_groups()[0].params()[i])) << i;
}

/// As `torch::nn::Module::to` does it: the parameter stays the one it was.
void become(at::Tensor& parameter, const at::Tensor& value) {
  parameter.set_data(value);
  parameter.mutable_grad().reset();
}

TEST_P(ParametersOf, OneThatChangesItsTypeTakesItsStateAlong) {
  Parameters narrow;
  for (const int64_t seed : {1, 2}) {
    narrow.push_back(matrix(seed).detach().to(torch::kFloat32).requires_grad_(true));
  }
  const auto optimizer = make(narrow);
  for (int i = 0; i < 3; ++i) step(*optimizer);
  std::stringstream archive;
  torch::save(*optimizer, archive);
  const Parameters wide{copy(narrow[0].to(torch::kFloat64)), copy(narrow[1].to(torch::kFloat64))};
  const auto expected = make(wide);
  torch::load(*expected, archive);

  for (auto& parameter : narrow) become(parameter, parameter.detach().to(torch::kFloat64));
  for (int i = 0; i < 2; ++i) {
    step(*optimizer);
    step(*expected);
  }
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(torch::equal(narrow[i], wide[i])) << i;
  std::stringstream a, b;
  torch::save(*optimizer, a);
  torch::save(*expected, b);
  EXPECT_EQ(a.str(), b.str()) << "a state kept its old type";
}

TEST_P(ParametersOf, OneThatChangesItsShapeStartsAnew) {
  for (const size_t i : {0, 1}) {
    const auto optimizer = make({matrix(1), matrix(2)});
    auto& parameters = optimizer->param_groups()[0].params();
    for (int t = 0; t < 3; ++t) step(*optimizer);
    become(parameters[i], torch::cat({parameters[i].detach(), parameters[i].detach()}));
    const auto fresh = make({copy(parameters[0]), copy(parameters[1])});
    step(*optimizer);
    step(*fresh);
    const auto& expected = fresh->param_groups()[0].params();
    EXPECT_TRUE(torch::equal(parameters[i], expected[i]));
    if (GetParam() == "lion") continue;  // its steps show no state: they are as long with and without
    EXPECT_FALSE(torch::equal(parameters[1 - i], expected[1 - i])) << "the other one lost its state";
  }
}

TEST_P(ParametersOf, AnArchiveGivesWhatFits) {
  const auto saved = make({matrix(1), matrix(2), matrix(3)});
  for (int i = 0; i < 3; ++i) step(*saved);
  std::stringstream file;
  torch::save(*saved, file);
  torch::serialize::InputArchive archive;
  archive.load_from(file);
  // The second has another shape, the third is new to the group's end; the archive's third finds none.
  const auto other_shape = torch::ones({5, 2}, torch::kFloat64).requires_grad_(true);
  const auto optimizer = make({copy(saved->param_groups()[0].params()[0]), other_shape});
  const auto report = dynamic_cast<OptimizerBase&>(*optimizer).load_matching(archive);
  EXPECT_EQ(report.taken, 1);
  ASSERT_EQ(report.skipped.size(), 2);
  EXPECT_EQ(report.skipped[0].rfind("group 0 parameter 1: the archive's ", 0), 0) << report.skipped[0];
  EXPECT_NE(report.skipped[0].find("has shape [3, 2], the parameter [5, 2]"), std::string::npos);
  EXPECT_EQ(report.skipped[1], "group 0 parameter 2: in the archive only");
  EXPECT_EQ(optimizer->state().size(), 1);
  EXPECT_EQ(optimizer->param_groups()[0].options().get_lr(), 0.01);
  step(*saved);
  step(*optimizer);
  EXPECT_TRUE(torch::equal(optimizer->param_groups()[0].params()[0], saved->param_groups()[0].params()[0]));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, ParametersOf, testing::ValuesIn(our_optimizers()), [](const auto& info) {
  auto name = info.param;
  for (auto& letter : name) letter = letter == '-' ? '_' : letter;
  return name;
});

TEST(ParametersOfSgdPh, OneThatGoesToAnotherGroupHasThatGroupsOptions) {
  Groups groups;
  const Parameters all{leaf({1, 2}), leaf({3, 4}), leaf({5, 6})};
  groups.push_back(group({all[0], all[1]}, SGDPHOptions(0.1)));
  groups.push_back(group({all[2]}, SGDPHOptions(0.5).second_order(false)));
  SGDPH optimizer(groups, SGDPHOptions());
  step(optimizer);
  ASSERT_EQ(optimizer.partition().entries[1].group, 0);
  // The order of all parameters stays.
  optimizer.param_groups()[0].params().pop_back();
  auto& second = optimizer.param_groups()[1].params();
  second.insert(second.begin(), all[1]);
  step(optimizer);
  EXPECT_EQ(optimizer.partition().entries[1].group, 1);
  EXPECT_FALSE(optimizer.partition().entries[1].second_order);
}

/// Two layers and a norm; `deep` has one more layer before the last.
torch::nn::Sequential network(bool deep) {
  torch::manual_seed(3);
  torch::nn::Sequential model;
  model->push_back("first", torch::nn::Linear(4, 6));
  model->push_back("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({6})));
  if (deep) model->push_back("between", torch::nn::Linear(6, 6));
  model->push_back("last", torch::nn::Linear(6, 3));
  model->to(torch::kFloat64);
  return model;
}

TEST(LoadMatching, GoesByNamesWhereThereAreSome) {
  auto small = network(false), large = network(true);
  SGDPH saved(*small, SGDPHOptions(0.1).shift_guard(false));
  const auto inputs = torch::randn({5, 4}, torch::kFloat64);
  for (int i = 0; i < 4; ++i) train_step(saved, [&] { return small->forward(inputs).pow(4).sum(); });
  std::stringstream file;
  torch::save(saved, file);
  torch::serialize::InputArchive archive;
  archive.load_from(file);
  SGDPH optimizer(*large, SGDPHOptions(0.02).shift_guard(false));
  const auto report = optimizer.load_matching(archive);
  EXPECT_EQ(report.taken, 6);
  EXPECT_EQ(
      report.skipped,
      (std::vector<std::string>{"between.weight: not in the archive", "between.bias: not in the archive"}));
  for (const auto& item : small->named_parameters()) {
    const auto* from = saved.param_state(item.value());
    const auto* to = optimizer.param_state(large->named_parameters()[item.key()]);
    ASSERT_NE(to, nullptr) << item.key();
    EXPECT_TRUE(torch::equal(to->momentum_buffer(), from->momentum_buffer())) << item.key();
    EXPECT_EQ(to->refreshes(), from->refreshes()) << item.key();
  }
  EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.02) << "options stay the optimizer's own";
  train_step(optimizer, [&] { return large->forward(inputs).pow(4).sum(); });
  EXPECT_TRUE(optimizer.last_step().applied);
  EXPECT_EQ(optimizer.last_step().step, 5) << "the count goes on";
}

TEST(LoadMatching, OfAnotherOptimizersArchiveChangesNothing) {
  AdaBelief saved(Parameters{matrix(1)});
  step(saved);
  std::stringstream file, before, after;
  torch::save(saved, file);
  torch::serialize::InputArchive archive;
  archive.load_from(file);
  Lion optimizer(Parameters{matrix(1)});
  step(optimizer);
  torch::save(optimizer, before);
  EXPECT_ERROR(optimizer.load_matching(archive), "Lion", "AdaBelief");
  torch::save(optimizer, after);
  EXPECT_EQ(before.str(), after.str());
}

TEST(MomentumOfSgdPh, WithoutWeightHasNoBuffer) {
  for (const auto rule : {Rule::Reference, Rule::Paper}) {
    const double off = rule == Rule::Paper ? 1 : 0;
    const auto options = SGDPHOptions(0.1).rule(rule).momentum(off).weight_decay(0.3).shift_guard(false);
    for (const auto dtype : {torch::kFloat64, torch::kBFloat16}) {  // by the kernel and by LibTorch's operators
      auto parameter = torch::tensor({{1.0, -2.0}}, dtype).requires_grad_(true);
      SGDPH optimizer(Parameters{parameter}, options);
      for (int i = 0; i < 3; ++i) {
        const auto gradient = torch::tensor({{0.5, 0.25 * i}}, dtype);
        const auto before = parameter.detach().clone();
        parameter.mutable_grad() = gradient.clone();
        optimizer.step();
        EXPECT_TRUE(torch::allclose(
            parameter.detach(), before - 0.1 * (gradient + 0.3 * before), dtype == torch::kFloat64 ? 1e-15 : 1e-2));
        EXPECT_TRUE(torch::equal(parameter.grad(), gradient)) << "the gradient was touched";
        EXPECT_FALSE(optimizer.param_state(parameter)->momentum_buffer().defined());
      }
    }
  }
}

TEST(MomentumOfSgdPh, OfABlockWithoutWeightHasNoBufferEither) {
  auto block = leaf({0.7, -0.4});
  const auto a = torch::tensor({{2.0, -0.5}, {-0.5, -3.0}}, torch::kFloat64);
  SGDPH optimizer(Parameters{block, leaf({1, 1})}, SGDPHOptions(0.1).lr_so(0.2).momentum(0).shift_guard(false));
  const auto before = block.detach().clone();
  train_step(optimizer, [&] { return 0.5 * block.dot(a.mv(block)); });
  ASSERT_EQ(optimizer.last_step().blocks_refreshed.size(), 1);
  EXPECT_FALSE(optimizer.param_state(block)->momentum_buffer().defined());
  const auto curvature = (0.1 * torch::tensor({1.5, 3.5}, torch::kFloat64) + 1e-4) / 0.1;
  EXPECT_TRUE(torch::allclose(block.detach(), before - 0.1 * 0.2 * a.mv(before) / curvature, 1e-12));
}

TEST(MomentumOfSgdPh, ThatLosesItsWeightIsForgotten) {
  auto parameter = torch::ones({2, 2}, torch::kFloat64).requires_grad_(true);
  SGDPH optimizer(Parameters{parameter}, SGDPHOptions(0.1));
  const auto gradient_step = [&](double momentum) {
    static_cast<SGDPHOptions&>(optimizer.param_groups()[0].options()).momentum(momentum);
    parameter.mutable_grad() = torch::ones({2, 2}, torch::kFloat64);
    optimizer.step();
    return optimizer.param_state(parameter)->momentum_buffer();
  };
  gradient_step(0.9);
  EXPECT_DOUBLE_EQ(gradient_step(0.9)[0][0].item<double>(), 1.9);
  EXPECT_FALSE(gradient_step(0).defined());
  EXPECT_DOUBLE_EQ(gradient_step(0.9)[0][0].item<double>(), 1);
}

}  // namespace
}  // namespace sgdph::test::parameters_test
