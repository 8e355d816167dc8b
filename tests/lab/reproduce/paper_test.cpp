#include "reproduce/paper.h"
#include "reproduce/experiment.h"
#include "support/checks.h"

#include <gtest/gtest.h>

#include <functional>

namespace sgdph::lab::reproduce::paper_test {
namespace {

using test::contains;
using test::error_of;

PaperFigure figure(const std::string& experiment, const std::vector<std::string>& cell) {
  return find_experiment(experiment).figures.at(cell);
}

TEST(PaperFigures, EveryCellOfEveryExperimentHasItsFigureOrSaysThatThereIsNone) {
  for (const auto& name : experiment_names()) {
    const auto experiment = find_experiment(name);
    if (experiment.paper.empty()) {
      EXPECT_TRUE(experiment.figures.empty()) << name;
      continue;
    }
    size_t cells = 1;
    for (const auto& axis : experiment.axes) cells *= axis.values.size();
    EXPECT_EQ(experiment.figures.size(), cells) << name;
    // Values that are not of the grid are refused when the experiment is read, so the numbers suffice.
    for (const auto& [cell, figure] : experiment.figures) {
      if (!figure.value) {
        EXPECT_FALSE(figure.note.empty()) << name;
        continue;
      }
      EXPECT_FALSE(figure.table.empty()) << name;
      EXPECT_FALSE(figure.section.empty()) << name;
      if (experiment.kind == ExperimentKind::Cost) continue;
      EXPECT_GT(*figure.value, 60) << name;
      EXPECT_LT(*figure.value, 96) << name;
    }
  }
}

TEST(PaperFigures, AreThoseOfThePaper) {
  EXPECT_EQ(figure("cifar", {"cifar100", "resnet18", "sgd-ph"}).value, 77.96);
  EXPECT_EQ(figure("cifar", {"cifar100", "resnet18", "sgd-ph"}).deviation, 0.30);
  EXPECT_EQ(figure("cifar", {"cifar100", "vgg19", "adam"}).value, 63.90);
  EXPECT_EQ(figure("cifar", {"cifar100", "vgg19", "adam"}).deviation, 1.62);
  EXPECT_EQ(figure("cifar", {"cifar100", "resnet50", "apollo"}).value, 78.68);
  EXPECT_EQ(figure("cifar", {"cifar10", "resnet50", "adabelief"}).value, 95.35);
  EXPECT_EQ(figure("cifar", {"cifar10", "vgg11", "sgdm"}).value, 92.17);
  EXPECT_EQ(figure("cifar", {"cifar10", "vgg19", "apollo"}).value, 93.76);
  EXPECT_EQ(figure("mini-imagenet", {"resnet18", "sgd-ph"}).value, 70.53);
  EXPECT_EQ(figure("mini-imagenet", {"resnet50", "adahessian"}).value, 70.25);
  EXPECT_EQ(figure("imagenet", {"sgd-ph"}).value, 70.59);
  EXPECT_FALSE(figure("imagenet", {"sgd-ph"}).deviation);
  EXPECT_TRUE(contains(figure("imagenet", {"adam"}).note, "cited"));
  EXPECT_EQ(figure("weight-norm", {"sgd-ph+wn"}).value, 67.93);
  EXPECT_EQ(figure("weight-norm", {"sgdm"}).value, 65.56);
  EXPECT_EQ(figure("lr-wd", {"0.02/0.005"}).value, 77.21);
  EXPECT_EQ(figure("tau-so", {"cifar100", "vgg11", "0.0001"}).value, 73.21);
  EXPECT_EQ(figure("tau-so", {"cifar10", "resnet50", "0.01"}).value, 95.27);
  EXPECT_EQ(figure("alpha", {"0.99"}).value, 77.81);
  EXPECT_EQ(figure("batch-size", {"16"}).deviation, 0.08);
  EXPECT_EQ(figure("batch-size", {"256"}).value, 77.56);
  EXPECT_EQ(figure("cost", {"time", "sgd-ph"}).value, 2.22);
  EXPECT_EQ(figure("cost", {"memory", "adahessian"}).value, 1.30);
  EXPECT_FALSE(figure("cost", {"time", "adam"}).value);
}

// What the paper says in words about its tables holds for what was typed off.
TEST(PaperFigures, HaveTheGainsThePaperStates) {
  double smallest = 100;
  double largest = 0;
  for (const auto* model : {"resnet18", "resnet50", "vgg11", "vgg19"}) {
    const auto gain =
        *figure("cifar", {"cifar100", model, "sgd-ph"}).value - *figure("cifar", {"cifar100", model, "sgdm"}).value;
    smallest = std::min(smallest, gain);
    largest = std::max(largest, gain);
  }
  EXPECT_NEAR(smallest, 0.76, 1e-9);
  EXPECT_NEAR(largest, 2.93, 1e-9);
  EXPECT_NEAR(
      *figure("mini-imagenet", {"resnet18", "sgd-ph"}).value - *figure("mini-imagenet", {"resnet18", "apollo"}).value,
      2.47, 1e-9);
  EXPECT_NEAR(
      *figure("mini-imagenet", {"resnet50", "sgd-ph"}).value -
          *figure("mini-imagenet", {"resnet50", "adahessian"}).value,
      1.92, 1e-9);
  EXPECT_NEAR(*figure("weight-norm", {"sgd-ph+wn"}).value - *figure("weight-norm", {"sgdm"}).value, 2.37, 1e-9);
  EXPECT_NEAR(*figure("lr-wd", {"0.01/0.005"}).value - *figure("lr-wd", {"0.01/0.01"}).value, 0.77, 1e-9);
  EXPECT_NEAR(*figure("alpha", {"0.9"}).value - *figure("alpha", {"0.8"}).value, 0.17, 1e-9);
}

TEST(PaperFigures, TheSameCellHasTheSameFigureInEveryTableThatRepeatsIt) {
  EXPECT_EQ(figure("lr-wd", {"0.01/0.005"}).value, figure("cifar", {"cifar100", "resnet18", "sgd-ph"}).value);
  EXPECT_EQ(figure("alpha", {"0.9"}).value, figure("cifar", {"cifar100", "resnet18", "sgd-ph"}).value);
  EXPECT_EQ(figure("batch-size", {"128"}).value, figure("cifar", {"cifar100", "resnet18", "sgd-ph"}).value);
  for (const auto* model : {"resnet18", "resnet50", "vgg11", "vgg19"}) {
    EXPECT_EQ(
        figure("tau-so", {"cifar100", model, "0.001"}).value, figure("cifar", {"cifar100", model, "sgd-ph"}).value);
  }
  EXPECT_EQ(figure("weight-norm", {"sgdm+bn"}).value, figure("cifar", {"cifar100", "vgg19", "sgdm"}).value);
  EXPECT_EQ(figure("weight-norm", {"sgd-ph+bn"}).value, figure("cifar", {"cifar100", "vgg19", "sgd-ph"}).value);
}

TEST(PaperFigures, MistakesAreNamedWithTheirLine) {
  const auto error = [](const std::string& text) {
    return error_of([&] { parse_paper_figures(text, {"opt"}, "x.csv"); });
  };
  const std::string head = "opt,value,std,table,section,note\n";
  EXPECT_EQ(error(head + "sgdm,1,2,t,s,\n"), "");
  EXPECT_TRUE(contains(error("opt,value\n"), "x.csv:1: the columns must be opt,value,std,table,section,note"));
  EXPECT_TRUE(contains(error(head + "sgdm,1,2,t,s,\nadam,1,2\n"), "x.csv:3: 3 fields instead of 6"));
  EXPECT_TRUE(contains(error(head + "sgdm,1x,2,t,s,\n"), "x.csv:2: '1x' is not a number"));
  EXPECT_TRUE(contains(error(head + "sgdm,nan,2,t,s,\n"), "not a number"));
  EXPECT_TRUE(contains(error(head + "sgdm,,,t,s,\n"), "neither a value nor a note"));
  EXPECT_TRUE(contains(error(head + "sgdm,1,2,t,s,\nsgdm,1,2,t,s,\n"), "x.csv:3: sgdm stands there twice"));
}

}  // namespace
}  // namespace sgdph::lab::reproduce::paper_test
