#include "study/summary.h"
#include "base/error.h"
#include "records/run_log.h"
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
  EXPECT_FALSE(rows[0].best);
  EXPECT_EQ(rows[2].top1.count, 0U);
  EXPECT_EQ(rows[2].diverged, 1U);
  EXPECT_FALSE(rows[2].relative_seconds);
  const auto text = present(rows).as(tables::TableFormat::Text);
  EXPECT_NE(text.find("73.00 +- 1.41 *"), std::string::npos) << text;
  EXPECT_NE(text.find("1/2, 1 diverged"), std::string::npos) << text;
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

TEST(Summary, ARecordOfAnotherKindIsNamed) {
  const TempFolder folder;
  records::RunLog(folder.path() / "log.jsonl").start({{{"kind", "other"}}});
  EXPECT_NE(error_of([&] { records::read_run_record(folder.path()); }).find("log.jsonl"), std::string::npos);
}

}  // namespace
}  // namespace sgdph::lab::study::summary_test
