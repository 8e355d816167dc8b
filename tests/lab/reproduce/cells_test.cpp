#include "reproduce/cells.h"
#include "base/names.h"
#include "optimizers/options.h"
#include "support/checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace sgdph::lab::reproduce::cells_test {
namespace {

using test::contains;
using test::error_of;

Selection at(Scale scale) {
  Selection selection;
  selection.scale = scale;
  return selection;
}

settings::Settings settings_of(
    const std::string& experiment, const std::vector<std::string>& values, Scale scale = Scale::Full) {
  for (const auto& cell : cells_of(find_experiment(experiment), at(scale))) {
    if (cell.values == values) return cell.settings;
  }
  ADD_FAILURE() << experiment << " has no such cell";
  return {};
}

TEST(Cells, FullScaleHasThePapersSettings) {
  auto s = settings_of("cifar", {"cifar100", "vgg19", "sgd-ph"});
  EXPECT_EQ(s.epochs, 200);
  EXPECT_EQ(s.batch_size, 128);
  EXPECT_EQ(s.lr_step_size, 60);
  EXPECT_EQ(s.optimizer.at("lr"), 0.01);
  EXPECT_EQ(s.optimizer.at("weight_decay"), 5e-3);
  EXPECT_EQ(s.optimizer.at("lr_so"), 1e-3);
  EXPECT_EQ(s.optimizer.at("hessian_momentum"), 0.9);
  EXPECT_EQ(s.model, "vgg19");
  EXPECT_EQ(s.width, 1);
  EXPECT_EQ(settings_of("cifar", {"cifar10", "resnet50", "adamw"}).option("weight_decay", 0.), 0.5);
  s = settings_of("mini-imagenet", {"resnet50", "sgd-ph"});
  EXPECT_EQ(s.dataset, "mini-imagenet");
  EXPECT_EQ(s.epochs, 100);
  EXPECT_EQ(s.lr_step_size, 30);
  EXPECT_EQ(s.optimizer.at("lr"), 0.05);
  EXPECT_EQ(s.optimizer.at("weight_decay"), 1e-3);
  s = settings_of("imagenet", {"sgd-ph"});
  EXPECT_EQ(s.batch_size, 256);
  EXPECT_EQ(s.optimizer.at("lr"), 0.1);
  EXPECT_EQ(s.optimizer.at("weight_decay"), 1e-4);
  s = settings_of("weight-norm", {"sgd-ph+wn"});
  EXPECT_EQ(s.norm, "weight");
  EXPECT_EQ(s.optimizer.at("lr"), 0.01);
  EXPECT_EQ(s.optimizer.at("weight_decay"), 1e-3);
  EXPECT_EQ(settings_of("weight-norm", {"sgdm+bn"}).option("lr", 0.), 0.1);
  EXPECT_EQ(settings_of("weight-norm", {"sgdm"}).norm, "none");
  EXPECT_EQ(settings_of("lr-wd", {"0.01/0.002"}).option("weight_decay", 0.), 0.002);
  EXPECT_EQ(settings_of("tau-so", {"cifar10", "vgg11", "0.0001"}).option("lr_so", 0.), 1e-4);
  EXPECT_EQ(settings_of("alpha", {"0.99"}).option("hessian_momentum", 0.), 0.99);
  EXPECT_EQ(settings_of("batch-size", {"16"}).batch_size, 16);
}

TEST(Cells, AValueOfAnAxisMaySetThingsForOneOptimizer) {
  const auto recipe = [](const std::string& opt) {
    return settings_of("rates", {"vgg11", "x1", opt}).option("lr", 0.);
  };
  const auto experiment = find_experiment("rates");
  EXPECT_EQ(experiment.axis("opt").values.size(), 7);
  for (const auto& opt : names_of(experiment.axis("opt").values)) {
    EXPECT_DOUBLE_EQ(settings_of("rates", {"vgg11", "x0.3", opt}).option("lr", 0.), 0.3 * recipe(opt)) << opt;
    EXPECT_DOUBLE_EQ(settings_of("rates", {"vgg11", "x3", opt}).option("lr", 0.), 3 * recipe(opt)) << opt;
  }
}

TEST(Cells, TheControlOfCurvatureHasTheRateAndDecayOfSgdPh) {
  for (const auto* model : {"resnet18", "vgg11"}) {
    const auto control = settings_of("curvature", {model, "sgdm"});
    const auto published = settings_of("curvature", {model, "published"});
    EXPECT_EQ(control.model, published.model);
    EXPECT_EQ(control.opt, "sgdm");
    EXPECT_EQ(control.lr(), published.lr());
    EXPECT_EQ(control.optimizer.at("weight_decay"), published.optimizer.at("weight_decay"));
    EXPECT_EQ(control.optimizer.at("momentum"), published.optimizer.at("momentum"));
  }
}

TEST(Cells, TheDeskIsSmallerAndKeepsRatesAndDecays) {
  for (const auto& name : experiment_names()) {
    const auto experiment = find_experiment(name);
    const auto full = cells_of(experiment, at(Scale::Full));
    const auto desk = cells_of(experiment, at(Scale::Desk));
    ASSERT_EQ(full.size(), desk.size());
    EXPECT_FALSE(reductions(experiment, at(Scale::Desk)).empty()) << name;
    EXPECT_TRUE(reductions(experiment, at(Scale::Full)).empty()) << name;
    for (size_t i = 0; i < full.size(); ++i) {
      EXPECT_EQ(full[i].settings.optimizer.at("lr"), desk[i].settings.optimizer.at("lr")) << name;
      EXPECT_EQ(full[i].settings.optimizer.at("weight_decay"), desk[i].settings.optimizer.at("weight_decay")) << name;
      if (experiment.kind == ExperimentKind::Cost) continue;
      EXPECT_LE(desk[i].settings.epochs, 20) << name;
      EXPECT_GT(desk[i].settings.train_limit, 0) << name;
    }
  }
}

TEST(Cells, ReductionsNameEverySettingThatDiffers) {
  const auto lines = reductions(find_experiment("cifar"), at(Scale::Desk));
  const auto has = [&](const std::string& line) { return std::find(lines.begin(), lines.end(), line) != lines.end(); };
  EXPECT_TRUE(has("epochs 200 -> 9"));
  EXPECT_TRUE(has("train_limit all -> 8000"));
  EXPECT_TRUE(has("batch_size 128 -> 32"));
  EXPECT_TRUE(has("runs 4 -> 1"));
  EXPECT_TRUE(has("model resnet18 -> resnet8, resnet50 -> resnet20"));
}

TEST(Cells, APartOfTheGridCanBeChosen) {
  const auto experiment = find_experiment("cifar");
  EXPECT_EQ(cells_of(experiment, at(Scale::Desk)).size(), 56U);
  auto selection = at(Scale::Desk);
  selection.only = {{"model", {"vgg11", "resnet18"}}, {"dataset", {"cifar100"}}};
  const auto cells = cells_of(experiment, selection);
  ASSERT_EQ(cells.size(), 14U);
  EXPECT_EQ(cells[0].label, "cifar100, resnet18, SGDM");
  selection.only = {{"model", {"vgg12"}}};
  EXPECT_TRUE(contains(error_of([&] { cells_of(experiment, selection); }), "did you mean 'vgg11'?"));
  selection.only = {{"modell", {"vgg11"}}};
  EXPECT_TRUE(contains(error_of([&] { cells_of(experiment, selection); }), "did you mean 'model'?"));
}

TEST(Cells, ExperimentsShareTheRunsOfTheCellsTheyShareAndNoOthers) {
  for (const auto scale : {Scale::Full, Scale::Desk}) {
    const auto folder = [&](const std::string& name, const std::vector<std::string>& values) {
      for (const auto& cell : cells_of(find_experiment(name), at(scale))) {
        if (cell.values == values) return run_of(cell, 1, "out").folder.string();
      }
      return std::string();
    };
    const auto main = folder("cifar", {"cifar100", "resnet18", "sgd-ph"});
    EXPECT_EQ(main, folder("lr-wd", {"0.01/0.005"}));
    EXPECT_EQ(main, folder("alpha", {"0.9"}));
    EXPECT_EQ(main, folder("batch-size", {scale == Scale::Full ? "128" : "32"}));
    EXPECT_EQ(main, folder("rates", {"resnet18", "x1", "sgd-ph"}));
    EXPECT_EQ(main, folder("curvature", {"resnet18", "published"}));
    EXPECT_EQ(main, folder("tau-so", {"cifar100", "resnet18", "0.001"}));
    EXPECT_NE(main, folder("alpha", {"0.8"}));
    EXPECT_NE(main, folder("cifar", {"cifar100", "resnet18", "sgdm"}));
    for (const auto& name : experiment_names()) {
      std::set<std::string> folders;
      const auto cells = cells_of(find_experiment(name), at(scale));
      for (const auto& cell : cells) folders.insert(run_of(cell, 1, "out").folder.string());
      if (name == "cost") continue;
      EXPECT_EQ(folders.size(), cells.size()) << name;
    }
  }
}

TEST(Cells, WhereAndHowARunIsDoneDoesNotNameItsFolder) {
  const auto experiment = find_experiment("alpha");
  auto selection = at(Scale::Desk);
  const auto before = run_of(cells_of(experiment, selection)[0], 3, "out");
  selection.options = {{"threads", {1, "--threads"}}, {"tensorboard", {true, "--tensorboard"}}};
  selection.data_paths = {{"cifar100", "/elsewhere"}};
  const auto after = run_of(cells_of(experiment, selection)[0], 3, "out");
  EXPECT_EQ(before.folder, after.folder);
  EXPECT_EQ(after.settings.data_path, "/elsewhere");
  EXPECT_EQ(after.settings.seed, 3);
  EXPECT_TRUE(contains(before.folder.string(), "cifar100-resnet8-sgd-ph-"));
}

TEST(Cells, SeedsAreThePapersUnlessGiven) {
  const auto experiment = find_experiment("cifar");
  EXPECT_EQ(seeds_of(experiment, at(Scale::Full)), (std::vector<int64_t>{1, 2, 3, 4}));
  auto selection = at(Scale::Full);
  selection.seeds = {7};
  EXPECT_EQ(seeds_of(experiment, selection), std::vector<int64_t>{7});
}

}  // namespace
}  // namespace sgdph::lab::reproduce::cells_test
