#include "train/run_folder.h"
#include "base/error.h"
#include "base/files.h"
#include "records/run_log.h"
#include "support/checks.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

namespace sgdph::lab::train::run_folder_test {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TempFolder;

const formats::CheckpointSections kSections{{"model", "some bytes"}, {"optimizer", std::string_view("\0\1\2", 3)}};

TEST(CheckpointFile, GivesBackWhatWasWritten) {
  const TempFolder folder;
  const auto path = folder.path() / "a.ckpt";
  formats::write_checkpoint(path, {{"x", 0.1 + 0.2}}, kSections);
  const auto file = formats::read_checkpoint(path);
  EXPECT_EQ(file.meta.at("x").get<double>(), 0.1 + 0.2);
  EXPECT_EQ(file.section("optimizer", "test"), std::string("\0\1\2", 3));
  EXPECT_NE(error_of([&] { file.section("none", "test"); }).find("no section 'none'"), std::string::npos);
}

TEST(CheckpointFile, EveryTruncationAndEveryFlippedBitIsNoticed) {
  const TempFolder folder;
  const auto path = folder.path() / "a.ckpt";
  formats::write_checkpoint(path, {{"x", 1}}, kSections);
  const auto whole = read_file(path);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(formats::parse_checkpoint(std::string_view(whole).substr(0, size), "test"), UserError) << size;
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      auto flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      EXPECT_THROW(formats::parse_checkpoint(flipped, "test"), UserError) << i << " " << bit;
    }
  }
  EXPECT_THROW(formats::parse_checkpoint(whole + "x", "test"), UserError);
}

TEST(CheckpointFile, AHeaderNestedWithoutEndIsRefused) {
  const TempFolder folder;
  const auto path = folder.path() / "a.ckpt";
  auto deep = nlohmann::json::object();
  for (int i = 0; i < 100; ++i) deep = nlohmann::json{{"in", std::move(deep)}};
  formats::write_checkpoint(path, deep, {});
  EXPECT_NE(error_of([&] { formats::read_checkpoint(path); }).find("nested more than 64 deep"), std::string::npos);
}

TEST(WriteFileAtomically, AFailureLeavesThePreviousFile) {
  const TempFolder folder;
  const auto path =
      folder.path() / std::string(250, 'f');  // no room for the name that the new file has until it is whole
  std::ofstream(path) << "old";
  EXPECT_NE(
      error_of([&] { write_file_atomically(path, {"new"}); }).find("what was there before is unchanged"),
      std::string::npos);
  EXPECT_EQ(read_file(path), "old");
}

TEST(RunFolder, KeepsTheNewestCheckpointsOnly) {
  const TempFolder folder;
  const auto run = RunFolder::create(folder.path() / "run", {});
  for (const int64_t step : {5, 10, 1500, 20}) run.add_checkpoint(step, nlohmann::json::object(), kSections, 2);
  const auto left = checkpoints_in(run.path());
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].filename(), "checkpoint-000001500.ckpt");
  EXPECT_EQ(left[1].filename(), "checkpoint-000000020.ckpt");
}

TEST(RunFolder, SetsDamagedCheckpointsAsideSoThatTheyAreNotKeptInPlaceOfGoodOnes) {
  const TempFolder folder;
  const auto run = RunFolder::create(folder.path() / "run", {});
  run.add_checkpoint(1, {{"step", 1}}, kSections, 2);
  const auto newest = run.add_checkpoint(2, {{"step", 2}}, kSections, 2);
  fs::resize_file(newest, fs::file_size(newest) - 1);
  EXPECT_EQ(run.newest_checkpoint()->meta.at("step"), 1);
  EXPECT_EQ(checkpoints_in(run.path()).size(), 1U);
  EXPECT_TRUE(fs::exists(newest.string() + ".damaged"));
}

TEST(RunFolder, RefusesToStartAnewWhenEveryCheckpointIsDamaged) {
  const TempFolder folder;
  const auto run = RunFolder::create(folder.path() / "run", {});
  EXPECT_FALSE(run.newest_checkpoint());
  fs::resize_file(run.add_checkpoint(1, nlohmann::json::object(), kSections, 2), 3);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(error_of([&] { run.newest_checkpoint(); }).find("no whole checkpoint"), std::string::npos);
  }
}

TEST(RunFolder, ACheckpointOfANewerProgramIsNotTakenForDamaged) {
  const TempFolder folder;
  const auto run = RunFolder::create(folder.path() / "run", {});
  run.add_checkpoint(1, nlohmann::json::object(), kSections, 2);
  const auto newest = run.add_checkpoint(2, nlohmann::json::object(), kSections, 2);
  auto bytes = read_file(newest);
  bytes[8] = 2;
  const auto crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), 20);
  for (int i = 0; i < 4; ++i) bytes[20 + i] = static_cast<char>(crc >> (8 * i));
  write_file_atomically(newest, {bytes});
  EXPECT_NE(error_of([&] { run.newest_checkpoint(); }).find("use the version that wrote it"), std::string::npos);
  EXPECT_TRUE(fs::exists(newest));
}

TEST(RunFolder, BelongsToOneProcessAtATime) {
  const TempFolder folder;
  const auto path = folder.path() / "run";
  {
    const auto run = RunFolder::create(path, {});
    EXPECT_NE(error_of([&] { RunFolder::open(path); }).find("another process"), std::string::npos);
  }
  std::ofstream(path / "checkpoint-000000001.ckpt.new") << "half";
  const auto run = RunFolder::open(path);
  EXPECT_FALSE(fs::exists(path / "checkpoint-000000001.ckpt.new"));
}

TEST(RunLog, ALineCutOffIsLeftOutAndOneThatIsNoRecordIsNamed) {
  const TempFolder folder;
  const auto path = folder.path() / "log.jsonl";
  records::RunLog log(path);
  log.start({{{"type", "header"}}});
  log.append({{"type", "epoch"}});
  EXPECT_EQ(records::read_log(path).size(), 2U);
  std::ofstream(path, std::ios::app) << "{\"type\": \"ep";
  EXPECT_EQ(records::read_log(path).size(), 2U);
  std::ofstream(path, std::ios::app) << "\n";
  EXPECT_NE(error_of([&] { records::read_log(path); }).find("log.jsonl:3"), std::string::npos);
}

TEST(RunLog, ALineThatCannotBeWrittenIsNotARecord) {
  const TempFolder folder;
  const auto path = folder.path() / "log.jsonl";
  records::RunLog log(path);
  log.start({{{"type", "header"}}});
  fs::remove(path);
  fs::create_symlink("/dev/full", path);
  // A link in its place is not followed, and what is no file is not written to.
  const auto refused = [&] { return error_of([&] { log.append({{"type", "epoch"}}); }); };
  EXPECT_NE(refused().find(path.string()), std::string::npos);
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_NE(refused().find("Is a directory"), std::string::npos);
  EXPECT_EQ(log.records().size(), 1U);
}

}  // namespace
}  // namespace sgdph::lab::train::run_folder_test
