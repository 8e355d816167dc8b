#include "report/tables.h"
#include "report/inspection_tables.h"
#include "sample_runs.h"
#include "support/checks.h"

#include <gtest/gtest.h>

namespace sgdph::lab::tables_test {
namespace {

using test::TempFolder;
using test::write_run;

std::vector<std::string> texts_of(const std::vector<TableCell>& row) {
  std::vector<std::string> texts;
  for (const auto& cell : row) texts.push_back(cell.text);
  return texts;
}

std::vector<std::string> first_column(const Table& table) {
  std::vector<std::string> texts;
  for (const auto& row : table.rows) texts.push_back(row.front().text);
  return texts;
}

TEST(SettingsTables, LeaveOutWhereAndHowARunWasMade) {
  const TempFolder folder;
  const auto settings = [](double lr, const char* path, int64_t workers, bool events) {
    return nlohmann::json{
        {"lr", lr},           {"data_path", path},     {"workers", workers},     {"threads", 2},
        {"width", 1.0},       {"tensorboard", events}, {"checkpoint_every", 10}, {"keep_checkpoints", 2},
        {"future_setting", 1}};
  };
  write_run(folder / "a", "sgdm", 1, 70, 4, settings(0.1, "/home/a/data", 1, false));
  write_run(folder / "b", "adam", 1, 71, 4, settings(0.01, "/home/b/data", 2, true));
  auto found = collect({folder.path()});
  const auto comparisons = make_comparisons(found);
  ASSERT_EQ(comparisons.size(), 1U);
  EXPECT_EQ(first_column(differing_settings(comparisons[0])), (std::vector<std::string>{"lr"}));
  EXPECT_EQ(
      first_column(shared_settings(comparisons[0])),
      (std::vector<std::string>{"dataset", "epochs", "future_setting", "model", "width"}));
}

nlohmann::ordered_json blocks() {
  return nlohmann::ordered_json::parse(R"([
    {"asymmetry": 1e-7, "block": "bn1.weight", "note": "", "off_diagonal": 1.25, "row_sum": {"cosine": null},
     "diagonal": [1, 2], "probes": [
       {"probe": "ones", "estimate": {"error": 0.5, "cosine": 0.25, "same_sign": 0.75}, "values": [1, 2]},
       {"probe": "hadamard", "estimate": {"error": 0.125, "cosine": 1, "same_sign": null}}]},
    {"block": "bn2.weight", "note": "", "shift_invariant": true, "probes": []},
    "damaged",
    {"block": "bn3.weight", "note": "", "probes": [7, {"probe": 3}, {"probe": "late", "estimate": []}]}])");
}

TEST(InspectionTables, HaveAColumnForEachFigureOfABlock) {
  const auto table = block_table(blocks());
  EXPECT_EQ(
      table.columns,
      (std::vector<std::string>{"block", "shift invariant", "off diagonal", "row sum: cosine", "asymmetry"}));
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(texts_of(table.rows[0]), (std::vector<std::string>{"bn1.weight", "-", "1.25", "-", "1e-07"}));
  EXPECT_EQ(table.rows[1][1].text, "yes");
}

TEST(InspectionTables, ShowWhatEachProbeHolds) {
  const auto table = probe_table(blocks());
  EXPECT_EQ(
      table.columns, (std::vector<std::string>{
                         "block", "error, ones", "error, hadamard", "error, late", "cosine, ones", "cosine, hadamard",
                         "cosine, late", "same sign, ones", "same sign, hadamard", "same sign, late"}));
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(
      texts_of(table.rows[0]),
      (std::vector<std::string>{"bn1.weight", "0.5", "0.125", "-", "0.25", "1", "-", "0.75", "-", "-"}));
  for (const auto& row : {table.rows[1], table.rows[2]}) {
    for (size_t i = 1; i < row.size(); ++i) EXPECT_EQ(row[i].text, "-");
  }
  EXPECT_TRUE(probe_table(nlohmann::ordered_json::parse(R"([{"block": "bn1.weight"}])")).rows.empty());
  EXPECT_TRUE(probe_table(nlohmann::ordered_json::array()).rows.empty());
}

TEST(InspectionTables, SayTheVerdictOnceAndThePlainFacts) {
  FoundInspection inspection;
  inspection.facts = nlohmann::ordered_json::parse(
      R"({"model": "resnet8", "verdict": {"blocks": 4, "off_diagonal": {"most": 2.5}, "shift_invariant": ["fc.bias"],
          "text": "They are not."}})");
  EXPECT_EQ(verdict_text(inspection), "They are not.");
  EXPECT_EQ(
      first_column(inspection_facts(inspection.facts)),
      (std::vector<std::string>{"model", "verdict: blocks", "verdict: off diagonal: most"}));
  inspection.facts = nlohmann::ordered_json::parse(R"({"verdict": "none"})");
  EXPECT_EQ(verdict_text(inspection), "");
}

}  // namespace
}  // namespace sgdph::lab::tables_test
