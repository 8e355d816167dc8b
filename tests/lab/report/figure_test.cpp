#include "report/figure.h"
#include "sample_runs.h"
#include "support/checks.h"

#include <gtest/gtest.h>

namespace sgdph::lab::report::figure_test {
namespace {

using test::contains;
using test::TempFolder;
using test::write_run;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(CurveFigure, HasALineForEachSeriesAndABandWhereThereAreSeeds) {
  const TempFolder folder;
  write_run(folder / "a", "sgdm", 1, 70);
  write_run(folder / "b", "sgdm", 2, 71);
  write_run(folder / "c", "adam", 1, 60);
  auto found = collect({folder.path()});
  const auto comparisons = make_comparisons(found);
  const auto svg = curve_figure(comparisons[0], 0);
  EXPECT_EQ(count_of(svg, "<polyline"), 2U);
  EXPECT_EQ(count_of(svg, "<polygon"), 1U);
  EXPECT_TRUE(contains(svg, "Test accuracy: cifar10, resnet8, 4 epochs"));
  EXPECT_TRUE(contains(svg, ">SGDM</text>"));
  EXPECT_TRUE(contains(svg, ">70 %</text>"));
}

TEST(CurveFigure, ALongTitleGoesOnInTheNextLine) {
  Comparison comparison;
  comparison.title =
      "Learning rates: does the ranking hang on the paper's? Seven optimizers at three rates - resnet18, x0.3";
  const auto svg = curve_figure(comparison, 0);
  EXPECT_EQ(count_of(svg, "class=\"title\""), 2U);
  EXPECT_TRUE(contains(svg, "Learning rates: does the ranking hang on the paper"));
  EXPECT_TRUE(contains(svg, "resnet18, x0.3</text>"));
  for (auto at = svg.find("class=\"title\""); at != std::string::npos; at = svg.find("class=\"title\"", at + 1)) {
    const auto from = svg.find('>', at) + 1;
    EXPECT_LE(svg.find('<', from) - from, 75U);  // bold letters of 14 px on 576 px
  }
}

TEST(CurveFigure, SurvivesOneEpochNoEpochAndFiguresOutOfTheOrdinary) {
  const TempFolder folder;
  write_run(folder / "one", "sgdm", 1, 70, 1);
  write_run(folder / "none", "adam", 1, 70, 0, {{"epochs", 1}});
  write_run(folder / "huge", "adamw", 1, 1e300, 1);
  write_run(folder / "low", "adamw", 2, -1e300, 1);
  write_run(folder / "flat", "apollo", 1, 0, 1);
  auto found = collect({folder.path()});
  const auto comparisons = make_comparisons(found);
  for (size_t metric = 0; metric < kMetrics.size(); ++metric) {
    const auto svg = curve_figure(comparisons[0], metric);
    EXPECT_FALSE(contains(svg, "nan")) << svg;
    EXPECT_FALSE(contains(svg, "inf")) << svg;
    EXPECT_LT(svg.size(), 20000U);
  }
}

TEST(AccuracyFigure, ShowsTrainingAndTestsOfARunInOnePicture) {
  const TempFolder folder;
  write_run(folder / "a", "sgd-ph", 1, 70);
  auto found = collect({folder.path()});
  const auto comparison = make_comparisons(found)[0];
  EXPECT_TRUE(comparison.is_single());
  const auto svg = accuracy_figure(comparison);
  EXPECT_EQ(count_of(svg, "<polyline"), 2U);
  EXPECT_TRUE(contains(svg, "SGD-PH: cifar10, resnet8, 4 epochs"));
  EXPECT_TRUE(contains(svg, ">Test accuracy</text>"));
  EXPECT_TRUE(contains(svg, ">Training accuracy</text>"));
  EXPECT_EQ(count_of(svg, "stroke-dasharray"), 2U) << "in the plot and in its key";
}

TEST(CurveFigure, ALossOfManyDecadesHasALogarithmicAxis) {
  const TempFolder folder;
  write_run(folder / "a", "sgdm", 1, 70, 50);
  auto found = collect({folder.path()});
  const auto svg = curve_figure(make_comparisons(found)[0], 1);
  EXPECT_TRUE(contains(svg, ">0.01</text>")) << svg;
  EXPECT_TRUE(contains(svg, ">0.02</text>"));
}

}  // namespace
}  // namespace sgdph::lab::report::figure_test
