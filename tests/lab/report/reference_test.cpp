#include "report/reference.h"
#include "base/files.h"
#include "report/tables.h"
#include "sample_runs.h"
#include "support/checks.h"

#include <gtest/gtest.h>

namespace sgdph::lab::report::reference_test {
namespace {

using test::contains;
using test::error_of;
using test::TempFolder;
using test::write_run;

TEST(References, AreReadFromTheirFile) {
  const TempFolder folder;
  write_file_atomically(
      folder / kReferenceFile,
      {R"({"figures": [{"source": "paper", "value": 77.5, "deviation": 0.25, "runs": ["a", "b"]},)",
       R"({"source": "paper", "value": 70, "runs": ["c"]}]})"});
  const auto figures = read_references(folder / kReferenceFile, read_file(folder / kReferenceFile));
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].source, "paper");
  EXPECT_EQ(figures[0].value, 77.5);
  EXPECT_EQ(figures[0].deviation, 0.25);
  EXPECT_EQ(figures[0].runs, (std::vector<std::filesystem::path>{folder / "a", folder / "b"}));
  EXPECT_FALSE(figures[1].deviation);
}

TEST(References, OfAnotherKindAreNamed) {
  const TempFolder folder;
  for (const auto* text : {"", "[]", "{\"figures\": [{\"source\": \"x\"}]}", "{\"figures\": 3}"}) {
    write_file_atomically(folder / kReferenceFile, {text});
    EXPECT_TRUE(contains(
        error_of([&] { read_references(folder / kReferenceFile, read_file(folder / kReferenceFile)); }),
        kReferenceFile))
        << text;
  }
}

TEST(References, StandBesideTheirRunsWithTheDifference) {
  const TempFolder folder;
  write_run(folder / "sgdm", "sgdm", 1, 70);
  write_run(folder / "ph", "sgd-ph", 1, 72);
  write_run(folder / "adam", "adam", 1, 60);
  write_file_atomically(
      folder / kReferenceFile, {R"({"figures": [{"source": "paper", "value": 75, "runs": ["sgdm"]},)",
                                R"({"source": "paper", "value": 74, "deviation": 0.5, "runs": ["ph"]}]})"});
  auto found = collect({folder.path()});
  const auto comparisons = make_comparisons(found);
  ASSERT_EQ(comparisons.size(), 1U);
  const auto table = result_table(comparisons[0]);
  EXPECT_EQ(table.columns[2], "paper %");
  EXPECT_EQ(table.rows[0][2].text, "75.00");
  EXPECT_EQ(table.rows[0][3].text, "-5.00");
  EXPECT_EQ(table.rows[1][2].text, "-");
  EXPECT_EQ(table.rows[2][2].text, "74.00 +- 0.50");
  EXPECT_TRUE(table.rows[2][1].strong);
  EXPECT_EQ(
      comparisons[0].ranking(),
      "Ranking of the means: nearly the opposite of the paper's ranking: 1 of 1 pairs swapped (Kendall's tau -1.00).");
}

}  // namespace
}  // namespace sgdph::lab::report::reference_test
