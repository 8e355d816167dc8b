#include "reproduce/experiment.h"
#include "support/checks.h"
#include "support/sample_data.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sgdph::lab::reproduce::experiment_test {
namespace {

using test::contains;
using test::error_of;
using test::TempFolder;

const char* const kSmall = R"(title = "T"
ranked = "opt"
[[axis]]
name = "opt"
values = ["sgdm", "sgd-ph"]
[full]
runs = 4
[full.run]
dataset = "fashion-mnist"
[desk]
why = "small"
)";

std::string error_with(const std::string& text) {
  return error_of([&] { parse_experiment("x", text, "x.toml"); });
}

TEST(Experiment, IsReadFromItsFile) {
  const auto experiment = parse_experiment("x", kSmall, "x.toml");
  EXPECT_EQ(experiment.title, "T");
  EXPECT_EQ(experiment.axes.size(), 1U);
  EXPECT_EQ(experiment.axes[0].values[1].label, "SGD-PH");
  EXPECT_EQ(experiment.full.runs, 4);
  EXPECT_EQ(experiment.desk.runs, 1);
  EXPECT_EQ(experiment.desk.why, "small");
}

TEST(Experiment, WithoutATitleIsCalledByItsName) {
  EXPECT_EQ(parse_experiment("x", "[[axis]]\nname = 'epochs'\nvalues = [1]\n", "x.toml").title, "x");
}

TEST(Experiment, MistakesAreNamedWithTheirLine) {
  EXPECT_TRUE(contains(error_with("titel = 'T'\n"), "x.toml:1: unknown key 'titel' (did you mean 'title'?)"));
  EXPECT_TRUE(contains(error_with("title = 3\n"), "x.toml:1: takes a text"));
  EXPECT_TRUE(contains(error_with("title = 'T'\n"), "needs an [[axis]]"));
  EXPECT_TRUE(contains(error_with("[[axis]]\nname = 'opt'\nvalues = []\n"), "has no values"));
  EXPECT_TRUE(contains(error_with("[[axis]]\nname = 'opt'\nvalues = ['sgdn']\n"), "sgdn"));
  EXPECT_TRUE(contains(error_with("[[axis]]\nname = 'opt'\nvalues = ['sgdm', 'sgdm']\n"), "twice"));
  EXPECT_TRUE(contains(error_with("[[axis]]\nname = 'lrr'\nvalues = [1.0]\n"), "unknown key 'lrr'"));
  EXPECT_TRUE(contains(error_with("[[axis]]\nname = 'epochs'\nvalues = [0]\n"), "epochs takes"));
  EXPECT_TRUE(contains(error_with("[[axis]]\nvalues = [0]\n"), "needs a name"));
  EXPECT_TRUE(contains(error_with("kind = 'costs'\n" + std::string(kSmall)), "costs"));
  EXPECT_TRUE(contains(error_with(std::string(kSmall) + "runs = 0\n"), "runs takes 1 to"));
  EXPECT_TRUE(contains(error_with(std::string(kSmall) + "[desk.run]\nepoch = 1\n"), "unknown key 'epoch'"));
  EXPECT_TRUE(
      contains(error_with(std::string(kSmall) + "[desk.optimizer.sgdm]\nlr_so = 1\n"), "lr_so is not a setting"));
  EXPECT_TRUE(contains(error_with(std::string(kSmall) + "[desk.axis.model]\na = {}\n"), "unknown axis of x 'model'"));
  EXPECT_TRUE(contains(error_with(std::string(kSmall) + "[desk.axis.opt]\nadam = {}\n"), "adam"));
  EXPECT_TRUE(contains(error_with("title = ["), "x.toml:1"));
  EXPECT_TRUE(contains(
      error_with("[[axis]]\nname = 'epochs'\nvalues = [1, 2]\n[desk.run]\nepochs = 3\n"),
      "x.toml:5: epochs is varied by the axis epochs"));
  EXPECT_TRUE(
      contains(error_with("kind = 'cost'\n[[axis]]\nname = 'quantity'\nvalues = ['tiem']\n"), "did you mean 'time'?"));
  EXPECT_TRUE(contains(error_with("kind = 'cost'\n[[axis]]\nname = 'model'\nvalues = ['vgg11']\n"), "axis model"));
  const std::string opts = "[[axis]]\nname = 'opt'\nvalues = ['sgdm', 'adam']\n";
  EXPECT_TRUE(contains(error_with(opts + opts), "axis opt stands there twice"));
  for (const auto* key : {"seed", "threads", "workers"}) {
    const auto error = error_with(fmt::format("[[axis]]\nname = '{}'\nvalues = [1, 2]\n", key));
    EXPECT_TRUE(contains(error, fmt::format("x.toml:3: {} cannot be varied", key))) << error;
  }
  EXPECT_TRUE(contains(error_with("[[axis]]\nname = 'quantity'\nvalues = ['time']\n"), "kind \"cost\""));
  const std::string named = "[[axis]]\nname = 'rate'\n[[axis.value]]\nname = 'low'\n";
  EXPECT_TRUE(contains(error_with(named + "optimizer = { sgdn = { lr = 1.0 } }\n"), "sgdn"));
  EXPECT_TRUE(contains(error_with(named + "optimizer = { sgdm = { lr_so = 1.0 } }\n"), "lr_so is not a setting"));
  const std::string published = kSmall + std::string("[published]\nfigures = '''\nopt,value,std,table,section,note\n");
  EXPECT_TRUE(contains(error_with(published + "adam,1,,t,s,\n'''\n"), "adam"));
  EXPECT_TRUE(contains(error_with(published + "sgdm,x,,t,s,\n'''\n"), "x.toml:15: 'x' is not a number"));
  EXPECT_TRUE(contains(error_with(kSmall + std::string("[published]\nfigure = 'a'\n")), "did you mean 'figures'?"));
  EXPECT_TRUE(contains(error_with("published = 3\n" + std::string(kSmall)), "x.toml:1: published must be a table"));
}

TEST(Experiment, ComesByNameByTableOrFromAFile) {
  EXPECT_EQ(find_experiment("table1").name, "cifar");
  EXPECT_EQ(find_experiment("figure5").name, "weight-norm");
  EXPECT_EQ(find_experiment("table8").name, "batch-size");
  const auto error = error_of([] { find_experiment("cifr"); });
  EXPECT_TRUE(contains(error, "did you mean 'cifar'?")) << error;
  const TempFolder folder;
  test::write_bytes(folder / "mine.toml", kSmall);
  EXPECT_TRUE(find_experiment((folder / "mine.toml").string()).figures.empty());
  test::write_bytes(
      folder / "mine.toml",
      kSmall + std::string("[published]\nfigures = '''\nopt,value,std,table,section,note\nsgdm,50,1,t,s,\n'''\n"));
  const auto mine = find_experiment((folder / "mine.toml").string());
  EXPECT_EQ(mine.name, "mine");
  EXPECT_EQ(mine.figures.at({"sgdm"}).value, 50);
  EXPECT_TRUE(contains(error_of([&] { find_experiment((folder / "other.toml").string()); }), "other.toml"));
}

TEST(Experiment, EveryTableOfThePaperHasOneAndSaysWhatTheDeskReduces) {
  std::vector<std::string> also;
  for (const auto& name : experiment_names()) {
    const auto experiment = find_experiment(name);
    EXPECT_FALSE(experiment.title.empty()) << name;
    EXPECT_EQ(experiment.paper.empty(), name == "rates" || name == "best-rates" || name == "curvature") << name;
    EXPECT_FALSE(experiment.desk.why.empty()) << name;
    also.insert(also.end(), experiment.also.begin(), experiment.also.end());
  }
  for (int table = 1; table <= 8; ++table) {
    EXPECT_EQ(std::count(also.begin(), also.end(), "table" + std::to_string(table)), 1) << table;
  }
  for (int figure = 3; figure <= 5; ++figure) {  // the first two are drawings
    EXPECT_EQ(std::count(also.begin(), also.end(), "figure" + std::to_string(figure)), 1) << figure;
  }
}

}  // namespace
}  // namespace sgdph::lab::reproduce::experiment_test
