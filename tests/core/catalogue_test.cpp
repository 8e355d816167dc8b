// Every optimizer of the catalogue can be made from a name and values, resumes bit for bit, and refuses what its list
// of options does not allow.

#include <sgdph/catalogue.h>

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

namespace sgdph::test::catalogue_test {
namespace {

/// The message of the std::invalid_argument that `action` throws; empty if it does not throw.
template <class Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A value that is out of the option's range, or nothing if it takes all of its type.
std::vector<OptionValue> bad_values(const OptionInfo& option) {
  std::vector<OptionValue> bad;
  if (!option.choices.empty()) return {OptionValue("no-such-choice")};
  const auto numbers = std::get_if<std::vector<double>>(&option.value);
  const auto add = [&](double number) {
    if (numbers != nullptr) {
      for (size_t i = 0; i < numbers->size(); ++i) {
        auto list = *numbers;
        list[i] = number;
        bad.emplace_back(list);
      }
    } else if (std::holds_alternative<int64_t>(option.value)) {
      if (std::isfinite(number)) bad.emplace_back(static_cast<int64_t>(number));
    } else if (std::holds_alternative<double>(option.value)) {
      bad.emplace_back(number);
    }
  };
  const auto& bound = option.bound;
  if (std::isfinite(bound.low)) add(bound.low_open ? bound.low : bound.low - 1);
  if (std::isfinite(bound.high)) add(bound.high_open ? bound.high : bound.high + 1);
  if (std::isfinite(bound.low) || std::isfinite(bound.high)) add(std::nan(""));
  return bad;
}

std::string test_name(const testing::TestParamInfo<OptimizerInfo>& info) {
  auto name = info.param.name;
  for (auto& letter : name) letter = letter == '-' ? '_' : letter;
  return name;
}

class Catalogue : public testing::TestWithParam<OptimizerInfo> {};

TEST_P(Catalogue, MakesTheOptimizerFromParametersGroupsAndAModule) {
  for (const auto* from : {"parameters", "groups", "module"}) {
    auto problem = make_problem(kProblemKinds[0]);
    const auto parameters = problem.model->parameters();
    auto values = OptionValues{{"lr", 0.02}};
    std::unique_ptr<torch::optim::Optimizer> optimizer;
    if (from == std::string("parameters")) {
      optimizer = make_optimizer(GetParam().name, parameters, values);
    } else if (from == std::string("module")) {
      optimizer = make_optimizer(GetParam().name, *problem.model, values);
    } else {
      const Parameters first(parameters.begin(), parameters.begin() + 1);
      const Parameters rest(parameters.begin() + 1, parameters.end());
      optimizer = make_optimizer(
          GetParam().name, std::vector<ParameterGroup>{{first, {{"weight_decay", 0.5}}}, {rest, {{"lr", 0.03}}}},
          values);
      ASSERT_EQ(optimizer->param_groups().size(), 2);
      EXPECT_EQ(optimizer->param_groups()[1].options().get_lr(), 0.03);
    }
    EXPECT_EQ(optimizer->param_groups()[0].options().get_lr(), 0.02) << from;
    const auto before = parameters[0].detach().clone();
    train_step(*optimizer, [&] { return problem.loss(); });
    EXPECT_FALSE(torch::equal(parameters[0], before)) << from;
  }
}

TEST_P(Catalogue, RefusesValuesOutOfRangeByName) {
  const auto& info = GetParam();
  size_t tried = 0;
  for (const auto& option : info.options) {
    for (const auto& bad : bad_values(option)) {
      SCOPED_TRACE(option.name + " = " + to_string(bad));
      const OptionValues values{{option.name, bad}};
      const auto message = refusal([&] { resolve_options(info.name, values); });
      EXPECT_TRUE(contains(message, option.name)) << message;
      EXPECT_TRUE(contains(message, info.label)) << message;
      const Parameters parameters{leaf({1})};
      EXPECT_EQ(refusal([&] { make_optimizer(info.name, parameters, values); }), message);
      EXPECT_FALSE(refusal([&] {
                     make_optimizer(info.name, std::vector<ParameterGroup>{{parameters, values}});
                   }).empty());
      ++tried;
    }
    EXPECT_FALSE(option.help.empty()) << option.name;
  }
  EXPECT_GE(tried, 2);
}

TEST_P(Catalogue, RefusesOptionsItDoesNotHaveAndValuesOfAnotherType) {
  const auto& info = GetParam();
  EXPECT_TRUE(contains(refusal([&] { resolve_options(info.name, {{"lrr", 0.1}}); }), "'lrr'"));
  for (const auto& option : info.options) {
    const auto other =
        std::holds_alternative<std::string>(option.value) ? OptionValue(true) : OptionValue(std::string("word"));
    const auto message = refusal([&] { resolve_options(info.name, {{option.name, other}}); });
    EXPECT_TRUE(contains(message, option.name + " takes")) << message;
  }
}

TEST_P(Catalogue, ResolvesEveryOptionAndStaysThere) {
  const auto all = resolve_options(GetParam().name, {});
  EXPECT_EQ(resolve_options(GetParam().name, all), all);
  for (const auto& option : GetParam().options) {
    if (option.unset) continue;
    EXPECT_EQ(all.at(option.name), option.value) << option.name;
  }
}

at::Tensor loss_at(NetA& model, int64_t step) {
  torch::manual_seed(500 + step);
  const auto inputs = torch::randn({8, 1, 8, 8}, torch::kFloat64);
  const auto labels = torch::randint(5, {8}, torch::kLong);
  return torch::nn::functional::cross_entropy(model->forward(inputs), labels);
}

void train(NetA& model, torch::optim::Optimizer& optimizer, int64_t from, int64_t to) {
  for (int64_t step = from; step < to; ++step) train_step(optimizer, [&] { return loss_at(model, step); });
}

TEST_P(Catalogue, ResumesWithTheSameBits) {
  if (GetParam().class_name.rfind("sgdph::", 0) != 0) GTEST_SKIP() << "archives of LibTorch's do not hold the options";
  torch::manual_seed(1);
  NetA whole;
  const auto optimizer = make_optimizer(GetParam().name, *whole, {{"lr", 0.01}, {"weight_decay", 0.1}});
  train(whole, *optimizer, 0, 5);
  std::stringstream saved_model, saved_optimizer;
  torch::save(whole, saved_model);
  torch::save(*optimizer, saved_optimizer);
  train(whole, *optimizer, 5, 12);

  NetA resumed;
  const auto fresh = make_optimizer(GetParam().name, *resumed, {{"lr", 3.0}});
  torch::load(resumed, saved_model);
  torch::load(*fresh, saved_optimizer);
  train(resumed, *fresh, 5, 12);
  for (const auto& item : whole->named_parameters()) {
    EXPECT_TRUE(torch::equal(item.value(), resumed->named_parameters()[item.key()])) << item.key();
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Catalogue, testing::ValuesIn(optimizers()), test_name);

TEST(CatalogueOfOptimizers, HasEachNameOnceAndOneBaseline) {
  std::set<std::string> names, labels;
  int baselines = 0;
  for (const auto& info : optimizers()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(labels.insert(info.label).second) << info.label;
    EXPECT_FALSE(info.title.empty() || info.source.empty()) << info.name;
    baselines += info.traits.baseline ? 1 : 0;
  }
  EXPECT_EQ(baselines, 1);
}

TEST(CatalogueOfOptimizers, AnOptionOfOneNameIsOfOneType) {
  std::map<std::string, size_t> types;
  for (const auto& info : optimizers()) {
    for (const auto& option : info.options) {
      const auto type = types.emplace(option.name, option.value.index()).first->second;
      EXPECT_EQ(option.value.index(), type) << info.name << ", " << option.name;
    }
  }
}

TEST(CatalogueOfOptimizers, RefusesAnUnknownName) {
  const auto message = refusal([] { make_optimizer("sgd-hp", Parameters{leaf({1})}); });
  EXPECT_TRUE(contains(message, "'sgd-hp'") && contains(message, "sgd-ph") && contains(message, "adamw")) << message;
  EXPECT_FALSE(refusal([] { optimizer_info("lion-king"); }).empty());
}

TEST(CatalogueOfOptimizers, KnowsWhoMeasuresCurvatureAndWhoHasBlocks) {
  EXPECT_TRUE(optimizer_info("sgd-ph").traits.measures_curvature && optimizer_info("sgd-ph").traits.has_blocks);
  EXPECT_TRUE(optimizer_info("adahessian").traits.measures_curvature);
  EXPECT_FALSE(optimizer_info("adahessian").traits.has_blocks || optimizer_info("adam").traits.measures_curvature);
}

TEST(OptionsByName, UnsetOnesFollowFromTheOthers) {
  auto values = resolve_options("sgd-ph", {});
  EXPECT_EQ(values.at("refresh"), OptionValue("cyclic"));
  EXPECT_EQ(values.at("curvature_floor"), OptionValue(0.0));
  values = resolve_options("sgd-ph", {{"rule", "paper"}, {"probe", "Rademacher"}});
  EXPECT_EQ(values.at("refresh"), OptionValue("all"));
  EXPECT_EQ(values.at("probe"), OptionValue("rademacher"));
  EXPECT_EQ(values.at("curvature_floor"), OptionValue(0.1));
  EXPECT_EQ(resolve_options("apollo", {{"rebound", "belief"}}).at("weight_decay_type"), OptionValue("decoupled"));
  EXPECT_EQ(resolve_options("apollo", {}).count("init_lr"), 0) << "it follows the learning rate";
}

TEST(OptionsByName, CombinationsAreRefused) {
  EXPECT_TRUE(contains(refusal([] { resolve_options("sgd-ph", {{"refresh", "joint"}}); }), "Joint"));
  EXPECT_TRUE(contains(refusal([] { resolve_options("sgd-ph", {{"probe_cycle", int64_t{6}}}); }), "probe_cycle"));
  EXPECT_TRUE(contains(refusal([] { resolve_options("sgdm", {{"nesterov", true}, {"momentum", 0.0}}); }), "nesterov"));
  EXPECT_TRUE(contains(
      refusal([] {
        make_optimizer("sgd-ph", std::vector<ParameterGroup>{{{leaf({1})}, {{"rule", "paper"}}}});
      }),
      "optimizer-wide"));
}

TEST(OptionsByName, TheOptimizerHasTheValues) {
  const auto optimizer = make_optimizer(
      "sgd-ph", Parameters{leaf({1})}, {{"lr", int64_t{1}}, {"probe", "hadamard"}, {"probe_cycle", int64_t{4}}});
  const auto& options = static_cast<const SGDPHOptions&>(optimizer->param_groups()[0].options());
  EXPECT_EQ(options.lr(), 1);
  EXPECT_EQ(options.probe(), Probe::Hadamard);
  EXPECT_EQ(options.probe_cycle(), 4);
  const auto adam = make_optimizer("adam", Parameters{leaf({1})}, {{"betas", std::vector<double>{0.5, 0.25}}});
  EXPECT_EQ(
      static_cast<const torch::optim::AdamOptions&>(adam->param_groups()[0].options()).betas(),
      std::make_tuple(0.5, 0.25));
}

TEST(OptionsByName, ABadValueOfAGroupIsNamedWithTheGroup) {
  const auto group = [](double lr) {
    return ParameterGroup{{torch::zeros({2}).requires_grad_(true)}, {{"lr", OptionValue(lr)}}};
  };
  EXPECT_EQ(
      refusal([&] {
        make_optimizer("lion", {group(0.1), group(-1)}, {});
      }),
      "Lion, group 1: lr must be finite and at least 0, got -1");
}

TEST(OptionsByName, AGroupMaySayWhatTheClassHasByDefault) {
  // LibTorch 2.10 and newer take such a value for one that was not given, and put the optimizer's in its place.
  const auto sgdm = make_optimizer(
      "sgdm", std::vector<ParameterGroup>{{{leaf({1})}, {{"momentum", 0.}}}, {{leaf({1})}, {}}}, {{"momentum", 0.9}});
  const auto momentum = [&](size_t group) {
    return static_cast<const torch::optim::SGDOptions&>(sgdm->param_groups()[group].options()).momentum();
  };
  EXPECT_EQ(momentum(0), 0);
  EXPECT_EQ(momentum(1), 0.9);
}

}  // namespace
}  // namespace sgdph::test::catalogue_test
