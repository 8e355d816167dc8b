#include "reproduce/result.h"
#include "base/files.h"
#include "base/machine.h"
#include "records/packed_records.h"
#include "records/run_log.h"
#include "support/checks.h"
#include "support/sample_data.h"

#include <gtest/gtest.h>

namespace sgdph::lab::reproduce::result_test {
namespace {

using test::contains;
using test::TempFolder;

const char* const kText = R"(title = "T"
paper = "Table 9"
ranked = "opt"
[[axis]]
name = "model"
values = ["resnet8", "vgg11"]
[[axis]]
name = "opt"
values = ["sgdm", "adam", "sgd-ph"]
[full.run]
dataset = "fashion-mnist"
[desk]
runs = 2
[desk.run]
epochs = 2
[published]
figures = '''
model,opt,value,std,table,section,note
resnet8,sgdm,70,0.5,Table 9,4,
resnet8,adam,60,,Table 9,4,
resnet8,sgd-ph,75,1,Table 9,4,
vgg11,sgdm,70,1,Table 9,4,
vgg11,adam,,,,,not run
vgg11,sgd-ph,75,1,Table 9,4,
'''
)";

class ResultTest : public testing::Test {
 protected:
  void write(size_t cell, int64_t seed, double top1, const std::string& status = "finished", size_t epochs = 2) {
    const auto run = run_of(cells_of(experiment_, selection_).at(cell), seed, folder_.path());
    std::filesystem::create_directories(run.folder);
    records::RunLog log(run.folder / "log.jsonl");
    log.start(
        {{{"type", "header"}, {"version", version_}, {"seed", seed}, {"settings", settings::to_json(run.settings)}}});
    for (size_t epoch = 1; epoch <= epochs; ++epoch) {
      log.append({{"type", "epoch"}, {"epoch", epoch}, {"train_top1", 99}, {"test_top1", epoch == epochs ? top1 : 10}});
    }
    if (status == "unfinished") return;
    log.append({{"type", "end"}, {"status", status}, {"cost", {{"train_seconds", 1}, {"peak_memory_bytes", 1}}}});
  }
  ExperimentResult result() const {
    return collect_result(experiment_, selection_, *records::folder_of_runs(folder_.path()));
  }

  Experiment experiment_ = parse_experiment("x", kText, "x.toml");
  Selection selection_;
  nlohmann::json version_ = sgdph_version();
  TempFolder folder_;
};

TEST_F(ResultTest, SetsOursBesideThePapers) {
  write(0, 1, 50);
  write(0, 2, 52);
  write(1, 1, 55);
  write(1, 2, 57);
  write(2, 1, 60);
  write(2, 2, 61);
  const auto found = result();
  EXPECT_DOUBLE_EQ(found.cells[0].ours.mean, 51);
  EXPECT_DOUBLE_EQ(*found.cells[0].difference(), -19);
  EXPECT_EQ(found.cells[0].rank, 3U);
  EXPECT_EQ(found.cells[0].paper_rank, 2U);
  EXPECT_EQ(found.cells[0].curve, (std::vector<double>{10, 51}));
  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_EQ(found.groups[0].agreement.swapped, 1U);
  EXPECT_EQ(found.groups[0].best, "SGD-PH");
  EXPECT_EQ(found.groups[1].agreement.pairs, 0U);
  EXPECT_TRUE(found.notes.empty());
  const auto text = present(found).as(tables::TableFormat::Text);
  for (const auto* part :
       {"51.00 +- 1.41", "70.00 +- 0.50", "-19.00", "1 of 3 pairs swapped", "SGD-PH is best in both", "Table 9", "none",
        "not run", "60.50 +- 0.71 *"}) {
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  }
  EXPECT_TRUE(contains(present(found).as(tables::TableFormat::Markdown), "**60.50 +- 0.71**"));
  const auto csv = present(found).as(tables::TableFormat::Csv);
  EXPECT_TRUE(contains(csv, "resnet8,sgdm,51,1.41421356")) << csv;
  EXPECT_TRUE(contains(csv, ",2,0,2,70,0.5,-19,3,2,Table 9,4,")) << csv;
  const auto json = nlohmann::json::parse(present(found).as(tables::TableFormat::Json));
  EXPECT_EQ(json["cells"][0]["difference"], -19);
  EXPECT_EQ(json["cells"][4]["paper"]["value"], nullptr);
  EXPECT_EQ(json["groups"][0]["swapped"], 1);
  EXPECT_TRUE(contains(curves_csv(found), "resnet8,sgdm,1,2,99,50"));
}

TEST_F(ResultTest, WhatIsNotFinishedIsLeftOutAndSaid) {
  write(0, 1, 50);
  write(0, 2, 90, "unfinished");
  write(1, 1, 90, "diverged", 1);
  const auto found = result();
  EXPECT_EQ(found.cells[0].ours.count, 1U);
  EXPECT_DOUBLE_EQ(found.cells[0].ours.mean, 50);
  EXPECT_EQ(found.cells[1].ours.count, 0U);
  EXPECT_EQ(found.cells[1].diverged, 1U);
  EXPECT_EQ(found.cells[1].rank, 0U);
  EXPECT_TRUE(contains(present(found).as(tables::TableFormat::Text), "diverged"));
}

TEST_F(ResultTest, RanksAreOverTheRowsThatBothHave) {
  write(3, 1, 50);
  write(4, 1, 60);  // the paper has none
  write(5, 1, 40);
  write(0, 1, 70);
  write(1, 1, 90, "diverged", 1);
  const auto found = result();
  EXPECT_EQ(found.cells[4].rank, 0U);
  EXPECT_EQ(found.cells[3].rank, 1U);
  EXPECT_EQ(found.cells[5].rank, 2U);
  EXPECT_EQ(found.cells[5].paper_rank, 1U);
  const auto text = present(found).as(tables::TableFormat::Text);
  EXPECT_TRUE(contains(text, "best is SGDM, in the paper SGD-PH; 2 of 3 ranked")) << text;
  EXPECT_TRUE(contains(text, "1 of 3 ranked, 1 diverged")) << text;
}

TEST_F(ResultTest, ARunThatWasContinuedBeyondThePlanIsLeftOutAndNamed) {
  write(0, 1, 50, "finished", 3);
  const auto found = result();
  EXPECT_EQ(found.cells[0].ours.count, 0U);
  EXPECT_TRUE(found.cells[0].runs.empty());  // no report is to average over it
  EXPECT_TRUE(found.cells[0].curve.empty());
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_TRUE(contains(found.notes[0], "it has 3 epochs, planned are 2")) << found.notes[0];
}

TEST_F(ResultTest, OtherSeedsCountWhereTheyHaveARecord) {
  write(0, 1, 50);
  write(0, 7, 60);
  const auto found = collect_result(experiment_, selection_, *records::folder_of_runs(folder_.path()), {1, 7});
  EXPECT_EQ(found.cells[0].ours.count, 2U);
  EXPECT_EQ(found.cells[0].planned, 3U);
  EXPECT_EQ(found.cells[1].planned, 2U);
}

TEST_F(ResultTest, AVersionThatIsNoTextIsSaidAsItIs) {
  version_ = 3;
  write(0, 1, 50);
  const auto found = result();
  EXPECT_EQ(found.cells[0].ours.count, 1U);
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_TRUE(contains(found.notes[0], "made by version 3")) << found.notes[0];
}

TEST_F(ResultTest, WithoutFiguresOfThePaperItsColumnsAreNotThere) {
  experiment_.figures.clear();
  experiment_.paper.clear();
  write(0, 1, 50);
  write(2, 1, 60);
  const auto text = present(result()).as(tables::TableFormat::Text);
  EXPECT_FALSE(contains(text, "paper")) << text;
  EXPECT_TRUE(contains(text, "best is SGD-PH; 2 of 3 ranked")) << text;
}

TEST_F(ResultTest, WhereTheDataLiesIsNotSaid) {
  selection_.data_paths = {{"fashion-mnist", "/some/where"}};
  EXPECT_FALSE(contains(present(result()).as(tables::TableFormat::Json), "/some/where"));
}

TEST_F(ResultTest, APackedFileGivesTheTablesOfItsFolder) {
  write(0, 1, 50);
  write(0, 2, 53);
  write(1, 1, 40, "diverged", 1);
  const auto folder = result();
  const auto file = folder_ / "packed.jsonl";
  records::PackedRecords records;
  for (const auto& cell : folder.cells) {
    for (const auto& run : cell.runs) {
      records.runs.push_back({run.folder.filename().string(), records::read_log(run.folder / "log.jsonl")});
    }
  }
  ASSERT_EQ(records.runs.size(), 3U);
  write_file_atomically(file, {records::pack_records(records)});
  const auto packed = collect_result(experiment_, selection_, *records::open_run_store(file));
  for (const auto format :
       {tables::TableFormat::Text, tables::TableFormat::Markdown, tables::TableFormat::Csv,
        tables::TableFormat::Json}) {
    EXPECT_EQ(present(packed).as(format), present(folder).as(format));
  }
  EXPECT_EQ(curves_csv(packed), curves_csv(folder));
}

TEST_F(ResultTest, APackedRunOfOtherSettingsIsLeftOutAndNamed) {
  write(0, 1, 50);
  const auto run = run_of(cells_of(experiment_, selection_)[0], 1, folder_.path());
  auto lines = records::read_log(run.folder / "log.jsonl");
  lines[0]["settings"]["batch_size"] = 7;
  const auto file = folder_ / "packed.jsonl";
  write_file_atomically(file, {records::pack_records({{{run.folder.filename().string(), lines}}, {}})});
  const auto found = collect_result(experiment_, selection_, *records::open_run_store(file));
  EXPECT_EQ(found.cells[0].ours.count, 0U);
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_TRUE(contains(found.notes[0], "batch_size is 7")) << found.notes[0];
}

TEST_F(ResultTest, RecordsOfAnotherVersionCountAndDamagedOnesAreNamed) {
  version_ = "0.0.1";
  write(0, 1, 50);
  version_ = sgdph_version();
  write(0, 2, 52);
  write(1, 1, 55);
  test::write_bytes(run_of(cells_of(experiment_, selection_)[1], 1, folder_.path()).folder / "log.jsonl", "rubbish\n");
  const auto found = result();
  EXPECT_EQ(found.cells[0].ours.count, 2U);
  ASSERT_EQ(found.notes.size(), 2U);
  EXPECT_TRUE(contains(found.notes[0], "made by version 0.0.1")) << found.notes[0];
  EXPECT_TRUE(contains(found.notes[1], "left out")) << found.notes[1];
}

}  // namespace
}  // namespace sgdph::lab::reproduce::result_test
