#include "settings/settings.h"
#include "base/error.h"
#include "base/names.h"
#include "optimizers/options.h"
#include "settings/recipe.h"
#include "support/checks.h"

#include <gtest/gtest.h>

#include <set>

namespace sgdph::lab::settings::config_test {
namespace {

using test::contains;
using test::error_of;

Layer layer(const std::string& key, nlohmann::json value) {
  return {{key, {std::move(value), "test"}}};
}

TEST(Names, TheNearestIsFoundForSlipsAndNothingForOtherWords) {
  const std::vector<std::string> names{"resnet18", "resnet50", "vgg11"};
  EXPECT_EQ(nearest_name("resnet81", names), "resnet18");
  EXPECT_EQ(nearest_name("resent50", names), "resnet50");
  EXPECT_EQ(nearest_name("VGG", names), std::nullopt);
  EXPECT_EQ(nearest_name("transformer", names), std::nullopt);
}

TEST(Settings, KeysAndFlagsAreUniqueAndEveryOptimizerKeyIsASetting) {
  Settings settings;
  std::set<std::string> keys;
  std::set<std::string> flags;
  for (const auto& field : fields_of_all_optimizers(settings)) {
    EXPECT_TRUE(keys.insert(field.key).second) << field.key;
    EXPECT_TRUE(flags.insert(field.flags).second) << field.flags;
    EXPECT_FALSE(field.help.empty()) << field.key;
  }
  for (const auto& info : sgdph::optimizers()) {
    for (const auto& option : info.options) EXPECT_EQ(keys.count(option.name), 1U) << info.name << " " << option.name;
  }
}

TEST(Settings, EverySettingSurvivesJsonAndToml) {
  Settings settings;
  settings.opt = "sgd-ph";
  settings.optimizer["lr"] = 0.1 + 0.2;
  settings.optimizer["weight_decay"] = 1e-300;
  settings.optimizer["shift_guard"] = false;
  settings.optimizer["probe"] = "hadamard";
  settings.lr_milestones = {3, 5};
  settings.data_path = "a \"quoted\" \\ path";
  settings.width = 0.25;
  settings.epochs = 123456789012;
  const auto expected = to_json(settings);
  EXPECT_EQ(to_json(settings_from_json(expected, "test")), expected);
  Sources sources;
  sources.recipes = {parse_recipe(to_toml(settings), "test")};
  EXPECT_EQ(to_json(combine(sources)), expected);
}

TEST(Settings, AValueOfAnotherTypeOrOutOfRangeIsRefusedByName) {
  Settings settings;
  EXPECT_NE(
      error_of([&] { apply_layer(settings, layer("epochs", 1.5)); }).find("epochs takes a whole number"),
      std::string::npos);
  EXPECT_NE(
      error_of([&] { apply_layer(settings, layer("augment", 1)); }).find("augment takes true or false"),
      std::string::npos);
  EXPECT_NE(
      error_of([&] {
        apply_layer(settings, layer("lr", -1.));
      }).find("lr takes a finite number of at least 0 and at most 1e+38, got -1"),
      std::string::npos);
  EXPECT_NE(
      error_of([&] {
        apply_layer(settings, layer("lr_milestones", {1, "x"}));
      }).find("a list of whole numbers"),
      std::string::npos);
  EXPECT_NE(
      error_of([&] { apply_layer(settings, layer("rule", "papr")); }).find("did you mean 'paper'?"), std::string::npos);
  EXPECT_NE(error_of([&] { apply_layer(settings, layer("beta1", 0.9)); }).find("it is betas now"), std::string::npos);
  EXPECT_NE(
      error_of([&] { apply_layer(settings, layer("rectify", true)); }).find("rectify is not a setting of sgd-ph"),
      std::string::npos);
  EXPECT_NE(error_of([&] { apply_layer(settings, layer("dataset", "a\nb")); }).find("one line"), std::string::npos);
  EXPECT_NE(
      error_of([&] { apply_layer(settings, layer("epoch", 1)); }).find("did you mean 'epochs'?"), std::string::npos);
}

TEST(Settings, OfAStoredRunMayHaveTheNamesOfVersionOne) {
  auto settings = settings_from_json({{"opt", "adamw"}, {"beta1", 0.8}, {"lr", 0.5}}, "test");
  EXPECT_EQ(settings.optimizer.at("betas"), nlohmann::json({0.8, 0.999}));
  settings = settings_from_json({{"opt", "apollo"}, {"beta1", 0.8}, {"warmup_steps", 7}}, "test");
  EXPECT_EQ(settings.optimizer.at("beta"), 0.8);
  EXPECT_EQ(settings.optimizer.at("warmup"), 7);
}

TEST(Recipe, HasLettersOfAllLanguagesBetweenQuotesAndInCommentsAndNowhereElse) {
  const auto recipe = parse_recipe(
      "\xef\xbb\xbf# \xc3\xa4 ~\ntitle = \"l\xc3\xa4uft ~e4 ~\"\n[run]\ndata_path = '\xe4\xb8\x96~'\n", "f");
  EXPECT_EQ(recipe.title, "l\xc3\xa4uft ~e4 ~");
  EXPECT_EQ(recipe.run.at("data_path").value, "\xe4\xb8\x96~");
  EXPECT_TRUE(contains(error_of([] { parse_recipe("[run]\n\xd0\x9c = 1\n", "f"); }), "f:2: "));
  EXPECT_TRUE(
      contains(error_of([] { parse_recipe("[run]\n\"\xd0\x9c\" = 1\n", "f"); }), "f:2: unknown key '\xd0\x9c'"));
  EXPECT_EQ(error_of([] { parse_recipe("[run]\ndata_path = \"\xff\"\n", "f"); }), "f:2: not UTF-8 text");
}

TEST(Recipe, LaterSourcesOverrideEarlierOnesAndTheOptimizersTableTheGeneralOne) {
  Sources sources;
  sources.recipes.push_back(parse_recipe(
      "[run]\nopt = 'adam'\nepochs = 1\nbatch_size = 1\nseed = 1\n"
      "[optimizer.adam]\nlr = 1\nepochs = 2\n[optimizer.sgdm]\nlr = 9\n",
      "r"));
  EXPECT_EQ(combine(sources).optimizer["lr"], 1);
  EXPECT_EQ(combine(sources).epochs, 2);
  sources.recipes.push_back(parse_recipe("[run]\nepochs = 3\nbatch_size = 3\n[optimizer.adam]\nbatch_size = 4\n", "c"));
  EXPECT_EQ(combine(sources).epochs, 3);
  EXPECT_EQ(combine(sources).batch_size, 4);
  sources.options = {{"batch_size", {5, "-b"}}, {"opt", {"sgdm", "--opt"}}};
  EXPECT_EQ(combine(sources).batch_size, 5);
  EXPECT_EQ(combine(sources).optimizer["lr"], 9);
  EXPECT_EQ(combine(sources).seed, 1);
}

struct PaperSetting {
  const char* recipe;
  const char* optimizer;
  double lr;
  double weight_decay;
};

class PaperRecipe : public testing::TestWithParam<PaperSetting> {};

TEST_P(PaperRecipe, HasThePublishedLearningRateAndWeightDecay) {
  Sources sources;
  sources.recipes = {named_recipe(GetParam().recipe)};
  sources.options = layer("opt", GetParam().optimizer);
  const auto settings = combine(sources);
  EXPECT_EQ(settings.lr(), GetParam().lr);
  EXPECT_EQ(settings.optimizer.at("weight_decay"), GetParam().weight_decay);
}

// Section 4 of the paper; Apollo's lr 1 is 0.01 in the scaling of its official code.
INSTANTIATE_TEST_SUITE_P(
    Settings, PaperRecipe,
    testing::Values(
        PaperSetting{"cifar100", "sgdm", 0.1, 5e-4}, PaperSetting{"cifar100", "adam", 1e-3, 5e-4},
        PaperSetting{"cifar100", "adamw", 1e-3, 0.5}, PaperSetting{"cifar100", "adabelief", 1e-3, 0.5},
        PaperSetting{"cifar100", "adahessian", 0.15, 5e-4}, PaperSetting{"cifar100", "apollo", 0.01, 2.5e-4},
        PaperSetting{"cifar100", "sgd-ph", 0.01, 5e-3}, PaperSetting{"cifar10", "sgd-ph", 0.01, 5e-3},
        PaperSetting{"cifar10", "sgdm", 0.1, 5e-4}, PaperSetting{"mini-imagenet", "sgdm", 0.1, 1e-4},
        PaperSetting{"mini-imagenet", "adam", 1e-3, 1e-4}, PaperSetting{"mini-imagenet", "adamw", 1e-3, 0.1},
        PaperSetting{"mini-imagenet", "adabelief", 1e-3, 0.1}, PaperSetting{"mini-imagenet", "adahessian", 0.15, 5e-4},
        PaperSetting{"mini-imagenet", "apollo", 0.01, 1e-4}, PaperSetting{"mini-imagenet", "sgd-ph", 0.05, 1e-3},
        PaperSetting{"imagenet", "sgdm", 0.1, 1e-4}, PaperSetting{"imagenet", "apollo", 0.01, 1e-4},
        PaperSetting{"imagenet", "sgd-ph", 0.1, 1e-4}),
    [](const auto& info) { return test::test_name(std::string(info.param.recipe) + "_" + info.param.optimizer); });

TEST(Recipe, EveryNamedRecipeIsWellFormedForEveryOptimizerAndHasARateForThePapers) {
  const std::set<std::string> of_the_paper{"sgdm", "adam", "adamw", "adabelief", "adahessian", "apollo", "sgd-ph"};
  for (const auto& name : recipe_names()) {
    for (const auto& optimizer : optimizers::optimizer_names()) {
      Sources sources;
      sources.recipes = {named_recipe(name)};
      sources.options = layer("opt", optimizer);
      const auto settings = combine(sources);
      EXPECT_EQ(settings.opt, optimizer);
      EXPECT_GT(optimizers::resolve_optimizer(optimizer, settings.optimizer).at("lr"), 0.) << name << " " << optimizer;
      EXPECT_GE(settings.optimizer.count("lr"), of_the_paper.count(optimizer)) << name << " " << optimizer;
    }
    EXPECT_FALSE(named_recipe(name).title.empty());
  }
}

TEST(Recipe, OfTheDemonstrationHasARateOfItsOwnForEveryOptimizerAndCurvesOfEightPoints) {
  const auto demo = named_recipe("demo");
  for (const auto& optimizer : optimizers::optimizer_names()) {
    const auto table = demo.optimizers.find(optimizer);
    ASSERT_NE(table, demo.optimizers.end()) << optimizer;
    EXPECT_EQ(table->second.count("lr"), 1U) << optimizer;
    Sources sources;
    sources.recipes = {demo};
    sources.options = layer("opt", optimizer);
    const auto settings = combine(sources);
    ASSERT_GT(settings.eval_every, 0) << optimizer;
    EXPECT_GE(static_cast<double>(settings.epochs) / settings.eval_every, 8) << optimizer;
  }
}

}  // namespace
}  // namespace sgdph::lab::settings::config_test
