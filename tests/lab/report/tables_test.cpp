#include "report/tables.h"
#include "sample_runs.h"
#include "support/checks.h"

#include <gtest/gtest.h>

namespace sgdph::lab::report::tables_test {
namespace {

using test::TempFolder;
using test::write_run;

std::vector<std::string> first_column(const tables::Table& table) {
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

}  // namespace
}  // namespace sgdph::lab::report::tables_test
