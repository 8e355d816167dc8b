#include "study/summary.h"
#include "base/error.h"
#include "optimizers/options.h"
#include "records/run_log.h"
#include "study/reading.h"
#include "support/checks.h"

#include <gtest/gtest.h>

namespace sgdph::lab::study::summary_test {
namespace {

using test::error_of;
using test::TempFolder;

PlannedRun write_run(
    const std::filesystem::path& root, const std::string& optimizer, int64_t seed, double top1, double seconds,
    const std::string& status = "finished") {
  PlannedRun run{optimizer, seed, root / (optimizer + std::to_string(seed))};
  std::filesystem::create_directories(run.folder);
  records::RunLog log(run.folder / "log.jsonl");
  log.start(
      {{{"type", "header"}}, {{"type", "epoch"}, {"test_top1", top1 + 1}}, {{"type", "epoch"}, {"test_top1", top1}}});
  if (status != "unfinished") {
    log.append(
        {{"type", "end"}, {"status", status}, {"cost", {{"train_seconds", seconds}, {"peak_memory_bytes", 1000}}}});
  }
  return run;
}

/// A row as summarise makes it of finished runs.
SummaryRow row(const std::string& optimizer, const std::vector<double>& top1, double relative_seconds = 0) {
  SummaryRow made;
  made.optimizer = optimizer;
  made.label = optimizers::optimizer_label(optimizer);
  made.top1 = tables::statistic(top1);
  made.test_images = 10000;
  made.seconds = 20;
  if (relative_seconds > 0) made.relative_seconds = made.relative_memory = relative_seconds;
  return made;
}

TEST(Summary, ComparesFinishedRunsWithSgdmAndMarksTheBest) {
  const TempFolder folder;
  const std::vector<PlannedRun> plan{
      write_run(folder.path(), "sgdm", 1, 70, 10),
      write_run(folder.path(), "sgd-ph", 1, 72, 30),
      write_run(folder.path(), "adam", 1, 99, 1, "diverged"),
      write_run(folder.path(), "sgdm", 2, 72, 20),
      write_run(folder.path(), "sgd-ph", 2, 74, 30),
      write_run(folder.path(), "adam", 2, 50, 1, "unfinished")};
  const auto rows = summarise(plan);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_DOUBLE_EQ(rows[0].top1.mean, 71);
  EXPECT_DOUBLE_EQ(rows[0].best_top1.mean, 72);
  EXPECT_DOUBLE_EQ(*rows[1].relative_seconds, 2);
  EXPECT_DOUBLE_EQ(*rows[1].relative_memory, 1);
  EXPECT_TRUE(rows[1].best);
  EXPECT_TRUE(rows[0].best) << "two seeds do not tell them apart";
  EXPECT_FALSE(rows[2].best);
  EXPECT_EQ(rows[2].top1.count, 0U);
  EXPECT_EQ(rows[2].diverged, 1U);
  EXPECT_FALSE(rows[2].relative_seconds);
  const auto text = present(rows).as(tables::TableFormat::Text);
  EXPECT_NE(text.find("73.00 +- 1.41 *"), std::string::npos) << text;
  EXPECT_NE(text.find("1/2, 1 diverged"), std::string::npos) << text;
}

TEST(Summary, WhoeverIsWithinTheNoiseOfTheBestIsMarkedAsTheSentenceSays) {
  const TempFolder folder;
  const auto write = [&](const std::string& optimizer, double top1) {
    auto run = write_run(folder.path(), optimizer, 1, top1, 10);
    auto lines = records::read_log(run.folder / "log.jsonl");
    lines[0]["test_images"] = 10000;
    records::RunLog(run.folder / "log.jsonl").start(lines);
    return run;
  };
  const auto rows = summarise({write("sgdm", 90.5), write("adam", 80), write("sgd-ph", 91)});
  EXPECT_TRUE(rows[0].best);
  EXPECT_FALSE(rows[1].best);
  EXPECT_TRUE(rows[2].best);
  EXPECT_NE(reading(rows).find("SGDM is within the noise"), std::string::npos) << reading(rows);
}

TEST(Summary, ForProgramsHasEveryFigureOfTheTableAndSaysWhatTheBestIsChosenBy) {
  auto tested = row("sgdm", {70}, 1);
  auto validated = row("adam", {71}, 1);
  validated.validated = true;
  validated.planned = 3;
  validated.other_length = 2;
  validated.val_top1 = tables::statistic({73});
  validated.ema_top1 = tables::statistic({74});
  validated.side_by_side = 2;
  validated.threads = {1, 4};
  const auto shown = present({tested, validated});
  const auto csv = shown.as(tables::TableFormat::Csv);
  EXPECT_NE(
      csv.find(",planned,other_length,best_by,val_top1_mean,val_top1_std,ema_top1_mean,ema_top1_std,"),
      std::string::npos);
  EXPECT_NE(csv.find(",0,0,test,,,,,1,\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",3,2,validation,73,0,74,0,2,1/4\n"), std::string::npos) << csv;
  EXPECT_EQ(shown.whole[0]["best_by"], "test");
  EXPECT_EQ(shown.whole[0]["side_by_side"], 1);
  EXPECT_EQ(shown.whole[1]["best_by"], "validation");
  EXPECT_EQ(shown.whole[1]["other_length"], 2);
  EXPECT_EQ(shown.whole[1]["threads"], (std::vector<int64_t>{1, 4}));
}

TEST(Summary, TimesTakenOtherwiseThanTheOthersAreMarkedInTheirRow) {
  auto one = row("sgdm", {70}, 1);
  auto two = row("adam", {71}, 1);
  one.threads = two.threads = {2};
  const auto text = [&] { return present({one, two}).as(tables::TableFormat::Text); };
  EXPECT_EQ(text().find("thread"), std::string::npos);
  EXPECT_EQ(text().find("at once"), std::string::npos);
  two.side_by_side = 2;
  EXPECT_NE(text().find("time, up to 2 at once"), std::string::npos) << text();
  EXPECT_NE(text().find("20.0 s, 2 at once"), std::string::npos) << text();
  one.side_by_side = 2;
  EXPECT_NE(text().find("time, 2 at once"), std::string::npos) << text();
  EXPECT_EQ(text().find("20.0 s, 2 at once"), std::string::npos) << text();
  one.threads = {1};
  EXPECT_NE(text().find("20.0 s, 1 thread "), std::string::npos) << text();
  EXPECT_NE(text().find("20.0 s, 2 threads"), std::string::npos) << text();
}

TEST(Summary, NeighboursThatTheEndRecordTellsOfCount) {
  const TempFolder folder;
  auto run = write_run(folder.path(), "sgdm", 1, 70, 10);
  auto lines = records::read_log(run.folder / "log.jsonl");
  lines[0]["threads"] = 3;
  lines[0]["settings"] = {{"side_by_side", 2}};
  records::RunLog(run.folder / "log.jsonl").start(lines);
  EXPECT_EQ(summarise({run})[0].side_by_side, 2);
  EXPECT_EQ(summarise({run})[0].threads, std::vector<int64_t>{3});
  lines.back()["cost"]["side_by_side"] = 4;
  records::RunLog(run.folder / "log.jsonl").start(lines);
  EXPECT_EQ(summarise({run})[0].side_by_side, 4);
}

TEST(Summary, EqualBestsAreBothMarked) {
  const TempFolder folder;
  const auto rows = summarise(
      {write_run(folder.path(), "sgdm", 1, 70, 10), write_run(folder.path(), "adam", 1, 60, 10),
       write_run(folder.path(), "sgd-ph", 1, 70, 10)});
  EXPECT_TRUE(rows[0].best);
  EXPECT_FALSE(rows[1].best);
  EXPECT_TRUE(rows[2].best);
}

TEST(Reading, OneSeedTellsNoMoreThanItsTestImagesDo) {
  EXPECT_EQ(
      reading(
          {row("sgdm", {90.76}, 1), row("adam", {91.27}, 1.1), row("apollo", {90.2}, 1.2),
           row("sgd-ph", {90.89}, 1.25)}),
      "Adam is first with 91.27 % test accuracy; SGD-PH and SGDM are within the noise (one seed cannot tell "
      "differences "
      "below 0.8 points with 10000 test images), the others behind; 0.38 points from the first, SGD-PH took 1.25 times "
      "SGDM's time and 1.25 times its memory.");
}

TEST(Reading, SeveralSeedsAreHeldToTheirSpread) {
  EXPECT_EQ(
      reading({row("sgdm", {90.1, 90.3, 90.2}, 1), row("sgd-ph", {91.1, 91.2, 91.3}, 1.5)}),
      "SGD-PH is first with 91.20 % test accuracy; SGDM is behind it by more than the noise (Welch's t-test over 3 "
      "seeds, "
      "95 %); SGD-PH took 1.50 times SGDM's time and 1.50 times its memory.");
  const auto text = reading({row("sgdm", {88, 90, 92}, 1), row("sgd-ph", {90, 91, 92}, 1.5)});
  EXPECT_NE(text.find("SGDM is within the noise (Welch's"), std::string::npos) << text;
  const auto alike = reading({row("sgdm", {90, 90}, 1), row("sgd-ph", {91, 91}, 1.5)});
  EXPECT_NE(alike.find("SGDM is behind it by more"), std::string::npos) << alike;
}

TEST(Reading, EqualMeansAreFirstTogether) {
  const auto text = reading({row("sgdm", {91}, 1), row("adam", {80}, 1), row("sgd-ph", {91}, 2)});
  EXPECT_NE(text.find("SGDM and SGD-PH are first with 91.00 %"), std::string::npos) << text;
  EXPECT_NE(text.find("; Adam is behind it by more than the noise"), std::string::npos) << text;
  EXPECT_EQ(text.find("from the first"), std::string::npos) << text;
  EXPECT_EQ(
      reading({row("sgdm", {91}, 1), row("adam", {91}, 1)}), "SGDM and Adam are first with 91.00 % test accuracy.");
}

TEST(Reading, SgdPhMayBeLast) {
  const auto text = reading({row("sgdm", {91}, 1), row("adam", {90.9}, 1), row("sgd-ph", {85}, 2)});
  EXPECT_NE(text.find("Adam is within the noise"), std::string::npos) << text;
  EXPECT_NE(text.find("the others behind; 6.00 points from the first, SGD-PH took 2.00 times"), std::string::npos)
      << text;
}

TEST(Reading, AllMayBeWithinTheNoise) {
  const auto text = reading({row("sgdm", {91}, 1), row("adam", {90.9}, 1), row("sgd-ph", {90.8}, 2)});
  EXPECT_NE(text.find("SGDM is first with 91.00 % test accuracy; both others are within the noise"), std::string::npos)
      << text;
}

TEST(Reading, WithoutSgdmTimesStandForThemselves) {
  const auto text = reading({row("adam", {91}), row("sgd-ph", {80})});
  EXPECT_NE(text.find("SGD-PH took 20.0 s a run, with no finished SGDM to compare."), std::string::npos) << text;
}

TEST(Reading, TimesTakenSideBySideAreCalledSo) {
  auto own = row("sgd-ph", {91}, 1.3);
  own.side_by_side = 2;
  const auto text = reading({row("sgdm", {90}, 1), own});
  EXPECT_NE(text.find("1.30 times its memory, timed with 2 runs at once."), std::string::npos) << text;
}

TEST(Reading, WhatIsNotFinishedIsSaid) {
  EXPECT_EQ(reading({row("sgdm", {}), row("sgd-ph", {})}), "No run is finished.");
  EXPECT_EQ(
      reading({row("sgdm", {90}, 1), row("sgd-ph", {})}),
      "SGDM alone is finished, with 90.00 % test accuracy; without a finished run: SGD-PH.");
}

TEST(Summary, RunsOfDifferentLengthsAreNotAveraged) {
  const TempFolder folder;
  const auto write = [&](int64_t seed, size_t epochs, double top1) {
    PlannedRun run{"sgdm", seed, folder.path() / std::to_string(seed)};
    std::filesystem::create_directories(run.folder);
    records::RunLog log(run.folder / "log.jsonl");
    std::vector<nlohmann::json> lines{{{"type", "header"}, {"test_images", 100}}};
    for (size_t i = 0; i < epochs; ++i) lines.push_back({{"type", "epoch"}, {"test_top1", top1}});
    lines.push_back(
        {{"type", "end"}, {"status", "finished"}, {"cost", {{"train_seconds", 1}, {"peak_memory_bytes", 1}}}});
    log.start(lines);
    return run;
  };
  std::vector<PlannedRun> plan{write(1, 2, 50), write(2, 3, 70), write(3, 3, 74)};
  auto rows = summarise(plan);
  EXPECT_DOUBLE_EQ(rows[0].top1.mean, 72) << "the longest are what was wanted, unless it is said";
  EXPECT_EQ(rows[0].other_length, 1U);
  EXPECT_EQ(rows[0].test_images, 100);
  EXPECT_NE(present(rows).as(tables::TableFormat::Text).find("2/3, 1 of another length"), std::string::npos);
  for (auto& run : plan) run.epochs = 2;
  rows = summarise(plan);
  EXPECT_DOUBLE_EQ(rows[0].top1.mean, 50);
  EXPECT_EQ(rows[0].other_length, 2U);
}

TEST(Summary, WithValidationTheTestFiguresAreThoseOfTheEnd) {
  const TempFolder folder;
  PlannedRun run{"sgdm", 1, folder.path() / "run"};
  std::filesystem::create_directories(run.folder);
  records::RunLog log(run.folder / "log.jsonl");
  log.start({{{"type", "header"}}, {{"type", "epoch"}, {"val_top1", 80}}, {{"type", "epoch"}, {"val_top1", 78}}});
  auto record = records::read_run_record(run.folder);
  EXPECT_TRUE(record->validated);
  EXPECT_FALSE(record->tested) << "an accuracy of validation passes for none of the test set";
  log.append(
      {{"type", "end"},
       {"status", "finished"},
       {"test_top1", 70},
       {"best_test_top1", 71},
       {"ema_test_top1", 72},
       {"cost", {{"train_seconds", 1}, {"peak_memory_bytes", 1}}}});
  const auto rows = summarise({run});
  EXPECT_DOUBLE_EQ(rows[0].top1.mean, 70);
  EXPECT_DOUBLE_EQ(rows[0].best_top1.mean, 71);
  EXPECT_DOUBLE_EQ(rows[0].val_top1.mean, 78);
  EXPECT_DOUBLE_EQ(rows[0].ema_top1.mean, 72);
  const auto text = present(rows).as(tables::TableFormat::Text);
  for (const auto* column :
       {"test accuracy %", "test at best validation %", "validation %", "test, averaged weights %"}) {
    EXPECT_NE(text.find(column), std::string::npos) << text;
  }
}

TEST(Summary, ARecordOfAnotherKindIsNamed) {
  const TempFolder folder;
  records::RunLog(folder.path() / "log.jsonl").start({{{"kind", "other"}}});
  EXPECT_NE(error_of([&] { records::read_run_record(folder.path()); }).find("log.jsonl"), std::string::npos);
}

}  // namespace
}  // namespace sgdph::lab::study::summary_test
