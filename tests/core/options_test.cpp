// Every invalid option is refused by name, wherever it stands, and nothing changes.

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>
#include <torch/version.h>

#include <cmath>
#include <limits>

namespace sgdph::test::options_test {
namespace {

const double kNan = std::nan("");
const double kInf = std::numeric_limits<double>::infinity();

/// From LibTorch 2.10 on, a group added through the base class gets the optimizer's defaults: its own options are
/// dropped before we could see them.
constexpr bool kBaseClassKeepsOptions =
    TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 10);

template <class Optimizer, class Options>
void expect_refused(const Options& bad, const std::string& option, const std::string& value) {
  SCOPED_TRACE(option + " = " + value);
  const Options good;
  EXPECT_ERROR(Optimizer(Parameters{leaf({1})}, bad), option, value);

  Groups groups;
  groups.push_back(group({leaf({1})}, good));
  groups.push_back(group({leaf({1})}, bad));
  EXPECT_ERROR(Optimizer(groups, good), option, value, "group 1");

  Optimizer optimizer(Parameters{leaf({1})}, good);
  EXPECT_ERROR(optimizer.add_param_group(group({leaf({1})}, bad)), option, value, "group 1");
  EXPECT_EQ(optimizer.param_groups().size(), 1) << "the group was added all the same";

  // Changed behind our back, or added through the base class: the next step says so before it does anything.
  auto parameter = leaf({1});
  Optimizer live(Parameters{parameter}, good);
  run_backward(live, parameter.square().sum());
  live.param_groups()[0].set_options(std::make_unique<Options>(bad));
  EXPECT_ERROR(live.step(), option, value, "group 0");
  EXPECT_EQ(parameter.item<double>(), 1);
  if (kBaseClassKeepsOptions) {
    Optimizer based(Parameters{leaf({1})}, good);
    static_cast<torch::optim::Optimizer&>(based).add_param_group(group({leaf({1})}, bad));
    EXPECT_ERROR(based.step(), option, value, "group 1");
  }
}

TEST(InvalidOptions, OfAGroupAddedThroughTheBaseClassAreSeen) {
  if (!kBaseClassKeepsOptions) {
    GTEST_SKIP() << "LibTorch " << TORCH_VERSION
                 << " gives a group added through torch::optim::Optimizer& the defaults";
  }
  expect_refused<SGDPH>(SGDPHOptions().eps(-1), "eps", "-1");
}

TEST(InvalidOptions, OfSgdPhAreRefused) {
  const auto refused = [](const SGDPHOptions& bad, const std::string& option, const std::string& value) {
    expect_refused<SGDPH>(bad, option, value);
  };
  refused(SGDPHOptions(-1), "lr", "-1");
  refused(SGDPHOptions(kNan), "lr", "nan");
  refused(SGDPHOptions(kInf), "lr", "inf");
  refused(SGDPHOptions().lr_so(-0.5), "lr_so", "-0.5");
  refused(SGDPHOptions().momentum(1), "momentum", "1");
  refused(SGDPHOptions().momentum(-0.1), "momentum", "-0.1");
  refused(SGDPHOptions().hessian_momentum(1), "hessian_momentum", "1");
  refused(SGDPHOptions().hessian_momentum(kNan), "hessian_momentum", "nan");
  refused(SGDPHOptions().weight_decay(-2), "weight_decay", "-2");
  refused(SGDPHOptions().eps(0), "eps", "0");
  refused(SGDPHOptions().curvature_floor(-1), "curvature_floor", "-1");
  refused(SGDPHOptions().probe_cycle(6), "probe_cycle", "6");
  refused(SGDPHOptions().probe_cycle(0), "probe_cycle", "0");
  refused(SGDPHOptions().refresh_every(0), "refresh_every", "0");
  refused(SGDPHOptions().refresh(Refresh::Joint), "Joint", "Ones");
  refused(SGDPHOptions().refresh(Refresh::Joint).probe(Probe::Hadamard), "Joint", "Hadamard");
  refused(SGDPHOptions().refresh(Refresh::Spread), "Spread", "Ones");
  refused(SGDPHOptions().rule(static_cast<Rule>(7)), "rule", "7");
  refused(SGDPHOptions().probe(static_cast<Probe>(7)), "probe", "7");
  refused(SGDPHOptions().refresh(static_cast<Refresh>(7)), "refresh", "7");
}

TEST(InvalidOptions, OfSgdPhUnderPaperWeighTheNewValue) {
  const Parameters parameters{leaf({1})};
  EXPECT_ERROR(SGDPH(parameters, SGDPHOptions().rule(Rule::Paper).momentum(0)), "momentum", "(0, 1]", "0");
  EXPECT_ERROR(SGDPH(parameters, SGDPHOptions().rule(Rule::Paper).hessian_momentum(1.5)), "hessian_momentum", "1.5");
  EXPECT_NO_THROW(SGDPH(parameters, SGDPHOptions().rule(Rule::Paper).momentum(1).hessian_momentum(1)));
  EXPECT_NO_THROW(SGDPH(parameters, SGDPHOptions().momentum(0).hessian_momentum(0)));
}

TEST(InvalidOptions, OfAdaBeliefAreRefused) {
  const auto refused = [](const AdaBeliefOptions& bad, const std::string& option, const std::string& value) {
    expect_refused<AdaBelief>(bad, option, value);
  };
  refused(AdaBeliefOptions(-1), "lr", "-1");
  refused(AdaBeliefOptions().betas({1, 0.9}), "betas[0]", "1");
  refused(AdaBeliefOptions().betas({0.9, -0.5}), "betas[1]", "-0.5");
  refused(AdaBeliefOptions().eps(-1), "eps", "-1");
  refused(AdaBeliefOptions().weight_decay(kNan), "weight_decay", "nan");
}

TEST(InvalidOptions, OfAdaHessianAreRefused) {
  const auto refused = [](const AdaHessianOptions& bad, const std::string& option, const std::string& value) {
    expect_refused<AdaHessian>(bad, option, value);
  };
  refused(AdaHessianOptions(-1), "lr", "-1");
  refused(AdaHessianOptions().betas({1, 0.9}), "betas[0]", "1");
  refused(AdaHessianOptions().betas({0.9, 1}), "betas[1]", "1");
  refused(AdaHessianOptions().eps(-1), "eps", "-1");
  refused(AdaHessianOptions().weight_decay(-1), "weight_decay", "-1");
  refused(AdaHessianOptions().hessian_power(2), "hessian_power", "2");
}

TEST(InvalidOptions, OfApolloAreRefused) {
  const auto refused = [](const ApolloOptions& bad, const std::string& option, const std::string& value) {
    expect_refused<Apollo>(bad, option, value);
  };
  refused(ApolloOptions(-1), "lr", "-1");
  refused(ApolloOptions().beta(1), "beta", "1");
  refused(ApolloOptions().eps(-1), "eps", "-1");
  refused(ApolloOptions().rebound("big"), "rebound", "big");
  refused(ApolloOptions().warmup(-3), "warmup", "-3");
  refused(ApolloOptions().init_lr(-1), "init_lr", "-1");
  refused(ApolloOptions().weight_decay(-1), "weight_decay", "-1");
  refused(ApolloOptions().weight_decay_type("l1"), "weight_decay_type", "l1");
}

TEST(OptimizerWideOptions, MayNotDifferBetweenGroups) {
  const SGDPHOptions base = SGDPHOptions().probe(Probe::Rademacher);
  const std::vector<std::pair<std::string, SGDPHOptions>> different{
      {"rule", SGDPHOptions(base).rule(Rule::Paper)},
      {"probe", SGDPHOptions(base).probe(Probe::Hadamard)},
      {"probe_cycle", SGDPHOptions(base).probe_cycle(4)},
      {"refresh", SGDPHOptions(base).refresh(Refresh::Joint)},
      {"refresh_every", SGDPHOptions(base).refresh_every(2)},
      {"shift_guard", SGDPHOptions(base).shift_guard(false)},
      {"seed", SGDPHOptions(base).seed(9)}};
  for (const auto& [option, options] : different) {
    Groups groups;
    groups.push_back(group({leaf({1})}, base));
    groups.push_back(group({leaf({1})}, options));
    EXPECT_ERROR(SGDPH(groups, base), option, "group 1", "optimizer-wide");
    SGDPH optimizer(Parameters{leaf({1})}, base);
    EXPECT_ERROR(optimizer.add_param_group(group({leaf({1})}, options)), option, "group 1");
    EXPECT_EQ(optimizer.param_groups().size(), 1);
  }
  // Saying what is the default anyway is no difference.
  Groups groups;
  groups.push_back(group({leaf({1})}, SGDPHOptions(base).refresh(Refresh::Cyclic)));
  EXPECT_NO_THROW(SGDPH(groups, base));
  Groups seeds;
  seeds.push_back(group({leaf({1})}, AdaHessianOptions().seed(3)));
  EXPECT_ERROR(AdaHessian(seeds), "seed", "3", "group 0");
}

TEST(Groups, AParameterStandsInOneGroupOnly) {
  const auto x = leaf({1});
  Groups groups;
  groups.push_back(group({x}, SGDPHOptions()));
  groups.push_back(group({leaf({2}), x}, SGDPHOptions()));
  EXPECT_ERROR(SGDPH(groups, SGDPHOptions()), "group 1", "parameter 1", "twice");
  EXPECT_ERROR(AdaBelief(Parameters{x, x}), "parameter 1", "twice");
  SGDPH optimizer(Parameters{x});
  EXPECT_ERROR(optimizer.add_param_group(torch::optim::OptimizerParamGroup(Parameters{x})), "twice");
  EXPECT_EQ(optimizer.param_groups().size(), 1);
}

TEST(Groups, OptionsOfAnotherOptimizerAreRefused) {
  Groups groups;
  groups.push_back(group({leaf({1})}, torch::optim::SGDOptions(0.1)));
  EXPECT_ERROR(SGDPH(groups), "group 0", "another optimizer", "SGDPHOptions");
}

TEST(Groups, WithoutOptionsTakeTheDefaults) {
  SGDPH optimizer(Parameters{leaf({1})}, SGDPHOptions(0.3).rule(Rule::Paper));
  optimizer.add_param_group(torch::optim::OptimizerParamGroup(Parameters{leaf({2})}));
  EXPECT_EQ(static_cast<SGDPHOptions&>(optimizer.param_groups()[1].options()).rule(), Rule::Paper);
  EXPECT_EQ(optimizer.param_groups()[1].options().get_lr(), 0.3);
}

TEST(Defaults, AreThosePublished) {
  const SGDPHOptions sgdph;
  EXPECT_EQ(sgdph.lr(), 0.01);
  EXPECT_EQ(sgdph.lr_so(), 1e-3);
  EXPECT_EQ(sgdph.momentum(), 0.9);
  EXPECT_EQ(sgdph.hessian_momentum(), 0.9);
  EXPECT_EQ(sgdph.weight_decay(), 0);
  EXPECT_EQ(sgdph.eps(), 1e-4);
  EXPECT_TRUE(sgdph.second_order());
  EXPECT_EQ(sgdph.rule(), Rule::Reference);
  EXPECT_EQ(sgdph.probe(), Probe::Ones);
  EXPECT_EQ(sgdph.probe_cycle(), 8);
  EXPECT_EQ(sgdph.refresh_every(), 1);
  EXPECT_TRUE(sgdph.shift_guard());
  EXPECT_EQ(sgdph.effective_refresh(), Refresh::Cyclic);
  EXPECT_EQ(SGDPHOptions().rule(Rule::Paper).effective_refresh(), Refresh::All);
  EXPECT_EQ(SGDPHOptions().rule(Rule::Paper).refresh(Refresh::Cyclic).effective_refresh(), Refresh::Cyclic);
  const AdaBeliefOptions adabelief;
  EXPECT_EQ(adabelief.lr(), 1e-3);
  EXPECT_EQ(adabelief.eps(), 1e-16);
  EXPECT_TRUE(adabelief.weight_decouple() && adabelief.rectify() && adabelief.degenerated_to_sgd());
  EXPECT_FALSE(adabelief.amsgrad() || adabelief.fixed_decay());
  const AdaHessianOptions adahessian;
  EXPECT_EQ(adahessian.lr(), 0.15);
  EXPECT_EQ(adahessian.eps(), 1e-4);
  EXPECT_EQ(adahessian.hessian_power(), 1);
  EXPECT_EQ(ApolloOptions(1).effective_weight_decay_type(), "L2");
  EXPECT_EQ(ApolloOptions(1).rebound("belief").effective_weight_decay_type(), "decoupled");
  EXPECT_EQ(ApolloOptions(1).warmup(), 500);
}

}  // namespace
}  // namespace sgdph::test::options_test
