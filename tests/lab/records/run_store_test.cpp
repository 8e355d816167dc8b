#include "records/run_store.h"
#include "base/files.h"
#include "records/packed_records.h"
#include "records/run_log.h"
#include "support/checks.h"

#include <gtest/gtest.h>

namespace sgdph::lab::records::run_store_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::contains;
using test::error_of;
using test::TempFolder;

const std::vector<json> kLines{
    {{"type", "header"}, {"settings", {{"lr", 0.1}}}},
    {{"type", "epoch"}, {"epoch", 1}, {"test_top1", 12.5}},
    {{"type", "end"}, {"status", "finished"}, {"cost", {{"train_seconds", 3}, {"peak_memory_bytes", 7}}}}};

/// The same run and the same other file, in a folder and packed.
class RunStoreTest : public testing::Test {
 protected:
  RunStoreTest() {
    fs::create_directories(folder_ / "tree/some/run");
    RunLog(folder_ / "tree/some/run/log.jsonl").start(kLines);
    write_file_atomically(folder_ / "tree/some/note.json", {"[1]"});
    write_file_atomically(
        folder_ / "packed.jsonl", {pack_records({{{"some/run", kLines}}, {{"some/note.json", "[1]"}}})});
  }

  TempFolder folder_;
};

TEST_F(RunStoreTest, AFolderAndAPackedFileGiveTheSame) {
  const auto tree = open_run_store(folder_ / "tree");
  const auto packed = open_run_store(folder_ / "packed.jsonl");
  EXPECT_FALSE(tree->is_packed());
  EXPECT_TRUE(packed->is_packed());
  EXPECT_EQ(tree->files(), (std::vector<fs::path>{"some/note.json", "some/run/log.jsonl"}));
  EXPECT_EQ(packed->files(), (std::vector<fs::path>{"some/run/log.jsonl", "some/note.json"}));
  for (const auto* store : {tree.get(), packed.get()}) {
    const auto record = store->record("some/run");
    ASSERT_TRUE(record);
    EXPECT_EQ(record->folder, store->place() / "some/run");
    EXPECT_EQ(record->header, kLines[0]);
    EXPECT_EQ(record->epochs, std::vector<json>{kLines[1]});
    EXPECT_EQ(record->status, "finished");
    EXPECT_DOUBLE_EQ(record->top1, 12.5);
    EXPECT_EQ(record->peak_memory, 7);
    EXPECT_EQ(store->text("some/note.json"), "[1]");
    EXPECT_FALSE(store->record("some/other"));
    EXPECT_NE(error_of([&] { static_cast<void>(store->text("some/other.json")); }), "");
  }
}

TEST_F(RunStoreTest, NamesBeginWithTheFolderAndArePackedWithIt) {
  EXPECT_EQ(open_run_store(folder_ / "tree")->shown_name("some/run"), "tree/some/run");
  EXPECT_EQ(open_run_store(folder_ / "tree/some/")->shown_name(""), "some");
  EXPECT_EQ(open_run_store(folder_ / "packed.jsonl")->shown_name("some/run"), "some/run");
}

TEST_F(RunStoreTest, TheFolderOfARunHasItAtItsTop) {
  const auto record = open_run_store(folder_ / "tree/some/run")->record("");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->folder, folder_ / "tree/some/run");
}

TEST_F(RunStoreTest, ARecordOfAnotherKindIsNamed) {
  write_file_atomically(folder_ / "packed.jsonl", {pack_records({{{"x", {{{"type", "epoch"}}}}}, {}})});
  const auto packed = open_run_store(folder_ / "packed.jsonl");
  EXPECT_TRUE(contains(error_of([&] { static_cast<void>(packed->record("x")); }), "packed.jsonl/x"));
}

TEST_F(RunStoreTest, WhatIsNoStoreIsRefused) {
  const auto error = [&](const char* name) { return error_of([&] { open_run_store(folder_ / name); }); };
  EXPECT_TRUE(contains(error("none"), "there is no folder"));
  EXPECT_TRUE(contains(error("none.jsonl"), "there is no file"));
  EXPECT_TRUE(contains(error("tree/some/note.json"), "not a folder"));
  EXPECT_TRUE(contains(error("tree/some/run/log.jsonl"), "log.jsonl:1: not records packed"));
  EXPECT_FALSE(folder_of_runs(folder_ / "none")->record("run"));
}

}  // namespace
}  // namespace sgdph::lab::records::run_store_test
