#include "report/curves.h"
#include "sample_runs.h"
#include "support/checks.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sgdph::lab::report::curves_test {
namespace {

using test::TempFolder;
using test::write_run;

std::vector<const FoundRun*> pointers(const Collection& found) {
  std::vector<const FoundRun*> runs;
  for (const auto& run : found.runs) runs.push_back(&run);
  return runs;
}

TEST(Curves, AreMeanAndDeviationOverTheRunsThatGotSoFar) {
  const TempFolder folder;
  write_run(folder / "a", "sgdm", 1, 70, 3);
  write_run(folder / "b", "sgdm", 2, 74, 2);
  const auto found = collect({folder.path()});
  const auto curves = make_curves(pointers(found), 100);
  EXPECT_EQ(curves.epochs, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(curves.counts, (std::vector<size_t>{2, 2, 1}));
  EXPECT_EQ(curves.seconds, (std::vector<double>{10, 20, 30}));
  EXPECT_DOUBLE_EQ(curves.metrics[0].mean[0], (68. + 73.) / 2);
  EXPECT_DOUBLE_EQ(curves.metrics[0].deviation[0], 5 / std::sqrt(2.));
  EXPECT_DOUBLE_EQ(curves.metrics[0].mean[2], 70);
  EXPECT_DOUBLE_EQ(curves.metrics[0].deviation[2], 0);
}

TEST(Curves, AreThinnedToSoManyPointsWithBothEnds) {
  const TempFolder folder;
  write_run(folder / "a", "sgdm", 1, 70, 101);
  const auto found = collect({folder.path()});
  for (const size_t points : {2U, 7U, 50U, 100U, 101U, 500U}) {
    const auto curves = make_curves(pointers(found), points);
    EXPECT_EQ(curves.epochs.size(), std::min<size_t>(points, 101)) << points;
    EXPECT_EQ(curves.epochs.front(), 1);
    EXPECT_EQ(curves.epochs.back(), 101);
    EXPECT_EQ(curves.seconds.back(), 1010);
  }
}

/// A run of epochs of so many seconds; a negative one was not logged.
void write_timed(const std::filesystem::path& folder, const std::vector<double>& seconds) {
  std::filesystem::create_directories(folder);
  std::vector<nlohmann::json> records;
  records.push_back({{"type", "header"}, {"settings", {{"dataset", "d"}, {"model", "m"}, {"opt", "sgdm"}}}});
  for (const auto epoch : seconds) {
    records.push_back({{"type", "epoch"}, {"test_top1", 50}});
    if (epoch >= 0) records.back()["cost"] = {{"train_seconds", epoch}};
  }
  records::RunLog(folder / "log.jsonl").start(std::move(records));
}

TEST(Curves, TimeDoesNotRunBackwardsWhereASlowRunEnds) {
  const TempFolder folder;
  write_timed(folder / "slow", {100, 100});
  write_timed(folder / "fast", {10, 10, 10, 10});
  const auto found = collect({folder.path()});
  EXPECT_EQ(make_curves(pointers(found), 10).seconds, (std::vector<double>{55, 110, 120, 130}));
  // Epochs that are not drawn count as well.
  EXPECT_EQ(make_curves(pointers(found), 2).seconds, (std::vector<double>{55, 130}));
}

TEST(Curves, ARunWithoutTimesCountsAndLeavesTheTimesOfOthersAlone) {
  const TempFolder folder;
  write_timed(folder / "a", {10, 10, -1});
  write_timed(folder / "b", {-1, 20, -1});
  const auto found = collect({folder.path()});
  const auto curves = make_curves(pointers(found), 10);
  EXPECT_EQ(curves.counts, (std::vector<size_t>{2, 2, 2}));
  EXPECT_EQ(curves.seconds[0], 10);
  EXPECT_EQ(curves.seconds[1], 25);
  EXPECT_TRUE(std::isnan(curves.seconds[2]));
}

TEST(Curves, HaveAGapWhereAFigureIsMissing) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "a");
  records::RunLog log(folder / "a" / "log.jsonl");
  log.start(
      {{{"type", "header"}, {"settings", {{"dataset", "d"}, {"model", "m"}, {"opt", "sgdm"}}}},
       {{"type", "epoch"}, {"test_top1", 50}, {"test_loss", nullptr}},
       {{"type", "epoch"}, {"test_top1", 60}, {"test_loss", 0.5}}});
  const auto found = collect({folder.path()});
  const auto curves = make_curves(pointers(found), 10);
  EXPECT_EQ(curves.epochs, (std::vector<double>{1, 2}));
  EXPECT_TRUE(std::isnan(curves.metrics[1].mean[0]));
  EXPECT_EQ(curves.metrics[1].mean[1], 0.5);
}

}  // namespace
}  // namespace sgdph::lab::report::curves_test
