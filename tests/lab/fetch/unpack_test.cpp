#include "fetch/unpack.h"

#include <gtest/gtest.h>

#include "lab/fetch/served.h"
#include "support/sample_data.h"

namespace sgdph::lab::fetch::unpack_test {
namespace {

namespace fs = std::filesystem;
using test::ArchiveItem;
using test::contains;
using test::error_of;
using test::make_archive;
using test::noise;
using Names = std::vector<std::string>;

UnpackOptions options() {
  UnpackOptions options;
  options.folder = "set";
  options.required = {"train.bin", "test.bin"};
  options.optional = {"names.txt"};
  options.max_bytes = 1 << 20;
  options.max_entries = 20;
  return options;
}

std::vector<ArchiveItem> good_items() {
  return {
      {"set/", "", AE_IFDIR, "", ""},
      {"set/train.bin", noise(20000, 1)},
      {"set/readme.html", "not expected"},
      {"./set/test.bin", noise(10000, 2)},
      {"elsewhere/train.bin", "another train.bin"},
  };
}

class Unpack : public ::testing::Test {
 protected:
  Unpack() { fs::create_directory(target_); }

  test::TempFolder scratch_;
  fs::path target_ = scratch_ / "target";
};

class UnpackFormat : public Unpack, public ::testing::WithParamInterface<const char*> {
 protected:
  fs::path archive_ = scratch_ / (std::string("set") + GetParam());
};

TEST_P(UnpackFormat, KeepsTheExpectedFilesAndNoOthers) {
  make_archive(archive_, good_items());
  unpack(archive_, target_, options());
  EXPECT_EQ(read_file(target_ / "train.bin"), noise(20000, 1));
  EXPECT_EQ(read_file(target_ / "test.bin"), noise(10000, 2));
  EXPECT_EQ(scratch_.names(), (Names{archive_.filename(), "target", "target/test.bin", "target/train.bin"}));
}

TEST_P(UnpackFormat, RefusesATruncatedArchiveWhereverItEnds) {
  make_archive(archive_, good_items());
  const auto bytes = read_file(archive_);
  std::vector<size_t> lengths{0, 1, bytes.size() - 1};
  for (size_t tenth = 1; tenth < 10; ++tenth) lengths.push_back(bytes.size() * tenth / 10);
  for (const auto length : lengths) {
    test::write_bytes(archive_, bytes.substr(0, length));
    EXPECT_TRUE(contains(error_of([&] { unpack(archive_, target_, options()); }), archive_.string())) << length;
    fs::remove_all(target_);
    fs::create_directory(target_);
  }
}

TEST_F(Unpack, NoticesThatBytesAreMissingAfterTheEndMarkOfATar) {
  const auto archive = scratch_ / "set.tar.gz";
  make_archive(scratch_ / "set.tar", good_items());
  const auto bytes = test::gzip(read_file(scratch_ / "set.tar") + std::string(4 << 20, '\0'));
  test::write_bytes(archive, bytes);
  unpack(archive, target_, options());
  fs::remove_all(target_);
  fs::create_directory(target_);
  test::write_bytes(archive, bytes.substr(0, bytes.size() - 100));
  EXPECT_TRUE(contains(error_of([&] { unpack(archive, target_, options()); }), "damaged"));
}

INSTANTIATE_TEST_SUITE_P(
    Of, UnpackFormat, ::testing::Values(".tar.gz", ".tar.xz", ".tar.bz2", ".zip"), [](const auto& format) {
      std::string name = format.param;
      name.erase(std::remove(name.begin(), name.end(), '.'), name.end());
      return name;
    });

struct Wicked {
  const char* name;
  ArchiveItem item;
  const char* reason;
};

class UnpackWicked : public Unpack, public ::testing::WithParamInterface<Wicked> {};

TEST_P(UnpackWicked, IsRefusedAndNothingIsCreatedOutside) {
  const auto archive = scratch_ / "set.tar.gz";
  auto items = good_items();
  items.insert(items.begin() + 1, GetParam().item);
  make_archive(archive, items);
  const auto message = error_of([&] { unpack(archive, target_, options()); });
  EXPECT_TRUE(contains(message, GetParam().reason)) << message;
  EXPECT_TRUE(contains(message, GetParam().item.name)) << message;
  EXPECT_EQ(scratch_.names(), (Names{"set.tar.gz", "target"}));
  EXPECT_FALSE(fs::exists("/tmp/sgdph-wicked"));
}

INSTANTIATE_TEST_SUITE_P(
    Entry, UnpackWicked,
    ::testing::Values(
        Wicked{"Parent", {"../wicked", "x"}, "leaves the folder"},
        Wicked{"ParentInside", {"set/../../wicked", "x"}, "leaves the folder"},
        Wicked{"ParentOfAnExpectedFile", {"set/x/../train.bin", "x"}, "leaves the folder"},
        Wicked{"Absolute", {"/tmp/sgdph-wicked", "x"}, "absolute"},
        Wicked{"SymbolicLink", {"set/train.bin", "", AE_IFLNK, "/etc/passwd", ""}, "a link"},
        Wicked{"SymbolicLinkInside", {"set/names.txt", "", AE_IFLNK, "train.bin", ""}, "a link"},
        Wicked{"SymbolicLinkForAFolder", {"set", "", AE_IFLNK, "/tmp", ""}, "a link"},
        Wicked{"HardLink", {"set/train.bin", "", AE_IFREG, "", "/etc/passwd"}, "a link"},
        Wicked{"CharacterDevice", {"set/train.bin", "", AE_IFCHR, "", ""}, "neither a file nor a folder"},
        Wicked{"BlockDevice", {"set/x", "", AE_IFBLK, "", ""}, "neither a file nor a folder"},
        Wicked{"Pipe", {"set/train.bin", "", AE_IFIFO, "", ""}, "neither a file nor a folder"}),
    [](const auto& wicked) { return wicked.param.name; });

TEST_F(Unpack, RefusesAnArchiveThatUnpacksToTooMuch) {
  for (const auto* name : {"set/train.bin", "not-kept"}) {
    const auto archive = scratch_ / "bomb.tar.gz";
    make_archive(archive, {{name, std::string(3 << 20, '\0')}});
    ASSERT_LT(fs::file_size(archive), 20000);
    EXPECT_TRUE(contains(error_of([&] { unpack(archive, target_, options()); }), "more than 1048576 bytes")) << name;
    uintmax_t written = 0;
    for (const auto& entry : fs::directory_iterator(target_)) written += entry.file_size();
    EXPECT_LE(written, 1 << 20);
  }
}

TEST_F(Unpack, RefusesAnArchiveOfTooManyEntries) {
  std::vector<ArchiveItem> items;
  for (int i = 0; i < 21; ++i) items.push_back({fmt::format("set/{}", i), ""});
  make_archive(scratch_ / "set.tar.gz", items);
  EXPECT_TRUE(contains(error_of([&] { unpack(scratch_ / "set.tar.gz", target_, options()); }), "more than 20 entries"));
}

TEST_F(Unpack, NamesARequiredFileThatIsMissing) {
  make_archive(scratch_ / "set.tar.gz", {{"set/train.bin", "x"}, {"test.bin", "in the wrong place"}});
  EXPECT_TRUE(contains(error_of([&] { unpack(scratch_ / "set.tar.gz", target_, options()); }), "set/test.bin"));
}

TEST_F(Unpack, RefusesAFileThatComesTwice) {
  auto items = good_items();
  items.push_back({"set/train.bin", "another"});
  make_archive(scratch_ / "set.tar.gz", items);
  EXPECT_TRUE(contains(error_of([&] { unpack(scratch_ / "set.tar.gz", target_, options()); }), "twice"));
}

TEST_F(Unpack, RefusesWhatIsNoArchive) {
  test::write_bytes(scratch_ / "page", "<html>Please log in</html>");
  EXPECT_TRUE(contains(error_of([&] { unpack(scratch_ / "page", target_, options()); }), "no archive"));
  EXPECT_TRUE(contains(error_of([&] { unpack(scratch_ / "none", target_, options()); }), "none"));
}

TEST_F(Unpack, StopsWhenAskedTo) {
  make_archive(scratch_ / "set.tar.gz", good_items());
  const std::atomic<bool> cancel{true};
  auto stopped = options();
  stopped.cancel = &cancel;
  EXPECT_THROW(unpack(scratch_ / "set.tar.gz", target_, stopped), Interrupted);
}

TEST(AStagingFolder, LeavesNothingBehindAndWhatIsThereAlone) {
  const test::TempFolder scratch;
  fs::create_directory(scratch / "set");
  test::write_bytes(scratch / "set" / "train.bin", "good");
  {
    const StagingFolder staging(scratch / "set");
    test::write_bytes(staging.path() / "train.bin", "half");
    EXPECT_EQ(scratch.names(), (Names{".set.new", ".set.new/train.bin", "set", "set/train.bin"}));
  }
  EXPECT_EQ(scratch.names(), (Names{"set", "set/train.bin"}));
  EXPECT_EQ(read_file(scratch / "set" / "train.bin"), "good");
}

TEST(AStagingFolder, IsFreshAfterAKilledProcess) {
  const test::TempFolder scratch;
  fs::create_directory(scratch / ".set.new");
  test::write_bytes(scratch / ".set.new" / "half", "half");
  const StagingFolder staging(scratch / "set");
  EXPECT_EQ(scratch.names(), Names{".set.new"});
}

TEST(AStagingFolder, MovesAsideWhatIsThere) {
  const test::TempFolder scratch;
  for (const auto* old : {"", "set.old", "set.old2"}) {
    StagingFolder staging(scratch / "set");
    test::write_bytes(staging.path() / "from", old);
    const auto moved = staging.put_in_place();
    EXPECT_EQ(moved.filename(), old);
    EXPECT_EQ(read_file(scratch / "set" / "from"), old);
  }
  EXPECT_EQ(scratch.names(), (Names{"set", "set.old", "set.old/from", "set.old2", "set.old2/from", "set/from"}));
}

}  // namespace
}  // namespace sgdph::lab::fetch::unpack_test
