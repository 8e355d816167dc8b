#include "base/files.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <fstream>
#include <thread>

#include "support/checks.h"

namespace sgdph::lab::files_test {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::error_of;
using test::TempFolder;

/// While it is alive, a file takes 1000 bytes.
class FullDisk {
 public:
  FullDisk() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{1000, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  return names;
}

TEST(ANewFile, IsThereOnlyWhenItIsPutInPlace) {
  const TempFolder folder;
  write_file_atomically(folder / "a", {"old"});
  {
    NewFile file(folder / "a");
    file.write("n");
    file.write("ew");
    EXPECT_EQ(read_file(folder / "a"), "old");
    file.put_in_place();
  }
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(ANewFile, LeavesNothingBehindIfItIsGivenUp) {
  const TempFolder folder;
  { NewFile(folder / "a").write("half"); }
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(ANewFile, LeavesWhatWasThereWhereTheDiskIsFull) {
  const TempFolder folder;
  write_file_atomically(folder / "a", {"old"});
  std::string error;
  {
    const FullDisk full;
    error = error_of([&] { write_file_atomically(folder / "a", {std::string(2000, 'x')}); });
  }
  EXPECT_TRUE(contains(error, "cannot write " + (folder / "a").string() + ":")) << error;
  EXPECT_TRUE(contains(error, "unchanged")) << error;
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(ANewFile, IsWrittenBySeveralAtOnceAndTheLastOneStays) {
  const TempFolder folder;
  {
    NewFile one(folder / "a");
    NewFile two(folder / "a");
    one.write("one");
    two.write("two");
    one.put_in_place();
    EXPECT_EQ(read_file(folder / "a"), "one");
    two.put_in_place();
  }
  EXPECT_EQ(read_file(folder / "a"), "two");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) write_own_file(folder / "a", {"text"});
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(read_file(folder / "a"), "text");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(ANewFile, TakesAwayWhatKilledProcessesLeftOfItAndNothingElse) {
  const TempFolder folder;
  NewFile alive(folder / "a");
  const auto held = names_in(folder.path()).at(0);
  for (const auto* name : {"a.123-4.new", "b.123-4.new", "a.new", "a.old-4.new"})
    std::ofstream(folder / name) << "half";
  write_own_file(folder / "a", {"whole"});
  auto names = names_in(folder.path());
  std::sort(names.begin(), names.end());
  std::vector<std::string> left{"a", held, "a.new", "a.old-4.new", "b.123-4.new"};
  std::sort(left.begin(), left.end());
  EXPECT_EQ(names, left);
  remove_all_half_written(folder.path());
  alive.put_in_place();
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"});
}

TEST(ANewFile, NeverWritesToWhatIsThereUnderItsName) {
  const TempFolder folder;
  fs::create_directory(folder / "inside");
  write_file_atomically(folder / "victim", {"mine"});
  const auto target = folder / "inside" / "a";
  // The names that come next; the number is unknown to whoever prepares a folder, but not to a test.
  { const NewFile probe(target); }
  for (int number = 1; number < 2000; ++number) {
    const auto name = target.string() + "." + std::to_string(::getpid()) + "-" + std::to_string(number) + ".new";
    if (number % 2 == 0) {
      fs::create_hard_link(folder / "victim", name);
    } else {
      ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
    }
  }
  fs::create_hard_link(folder / "victim", target.string() + ".new");  // as earlier versions called it
  write_own_file(target, {"whole"});
  EXPECT_EQ(read_file(target), "whole");
  EXPECT_EQ(read_file(folder / "victim"), "mine");
}

TEST(APipe, IsNotWaitedForWhereAFileShouldBe) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "a").c_str(), 0600), 0);
  const auto refused = (folder / "a").string() + " is no regular file but a pipe or device; remove it";
  EXPECT_EQ(error_of([&] { read_file(folder / "a"); }), refused);
  EXPECT_EQ(error_of([&] { check_regular(folder / "a"); }), refused);
  EXPECT_EQ(error_of([&] { check_regular(folder / "nothing"); }), "");
  for (const auto mode : {OutputFile::Mode::Create, OutputFile::Mode::Replace, OutputFile::Mode::Append}) {
    EXPECT_TRUE(contains(error_of([&] { OutputFile(folder / "a", mode); }), "cannot write"));
  }
  EXPECT_TRUE(contains(error_of([&] { append_to_file(folder / "a", "more"); }), "cannot write"));
  std::thread writer([&] { std::ofstream(folder / "a") << "by the pipe"; });
  EXPECT_EQ(read_named_file(folder / "a"), "by the pipe");
  writer.join();
}

TEST(AnOutputFile, IsCreatedReplacedOrContinued) {
  const TempFolder folder;
  const auto path = folder / "a";
  const auto write = [&](OutputFile::Mode mode, const std::string& text) {
    OutputFile file(path, mode, "; a remark");
    file.write(text);
    file.finish();
  };
  write(OutputFile::Mode::Create, "12");
  write(OutputFile::Mode::Append, "3");
  EXPECT_EQ(read_file(path), "123");
  write(OutputFile::Mode::Replace, "4");
  EXPECT_EQ(read_file(path), "4");
  EXPECT_EQ(
      error_of([&] { write(OutputFile::Mode::Create, "5"); }),
      "cannot write " + path.string() + ": File exists; a remark");
  EXPECT_EQ(read_file(path), "4");
}

TEST(AnOutputFile, DoesNotFollowALink) {
  const TempFolder folder;
  fs::create_symlink(folder / "elsewhere", folder / "a");
  for (const auto mode : {OutputFile::Mode::Create, OutputFile::Mode::Replace, OutputFile::Mode::Append}) {
    EXPECT_TRUE(contains(error_of([&] { OutputFile(folder / "a", mode); }), "cannot write"));
  }
  EXPECT_FALSE(fs::exists(folder / "elsewhere"));
}

TEST(Appending, TakesBackWhatDoesNotFit) {
  const TempFolder folder;
  write_file_atomically(folder / "a", {"old"});
  std::string error;
  {
    const FullDisk full;
    error = error_of([&] { append_to_file(folder / "a", std::string(2000, 'x')); });
  }
  EXPECT_TRUE(contains(error, "what it held before is unchanged")) << error;
  EXPECT_EQ(read_file(folder / "a"), "old");
  append_to_file(folder / "a", "er");
  EXPECT_EQ(read_file(folder / "a"), "older");
}

TEST(PuttingInPlace, MovesFoldersTooAndSaysWhatFailed) {
  const TempFolder folder;
  fs::create_directory(folder / "a");
  put_in_place(folder / "a", folder / "b");
  EXPECT_TRUE(fs::is_directory(folder / "b"));
  write_file_atomically(folder / "c", {"file"});
  EXPECT_TRUE(contains(error_of([&] { put_in_place(folder / "c", folder / "b"); }), "cannot put"));
}

}  // namespace
}  // namespace sgdph::lab::files_test
