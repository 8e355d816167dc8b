#include "formats/zip_file.h"
#include "support/zip_archive.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sgdph::test::zip_file_test {
namespace {

using namespace sgdph::lab;
using namespace sgdph::lab::formats;

std::string refusal_of_member(const std::string& bytes, const std::string& name) {
  try {
    const ZipFile archive(bytes);
    archive.read(name);
  } catch (const DamagedFile& error) {
    return error.what();
  }
  return "";
}

/// Everything at the place is replaced.
std::string patched(std::string bytes, size_t place, const std::string& by) {
  return bytes.replace(place, by.size(), by);
}

TEST(ZipFile, GivesTheMembersItHolds) {
  const auto bytes = zip_archive({{"top/data.pkl", "abc"}, {"top/data/0", ""}});
  const ZipFile archive(bytes);
  auto names = archive.names();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"top/data.pkl", "top/data/0"}));
  EXPECT_EQ(archive.folder(), "top");
  EXPECT_TRUE(archive.contains("top/data/0"));
  EXPECT_FALSE(archive.contains("data/0"));
  EXPECT_EQ(archive.read("top/data.pkl"), "abc");
  EXPECT_EQ(archive.read("top/data/0"), "");
}

TEST(ZipFile, IsFoundBeforeAComment) {
  auto bytes = zip_archive({{"a", "abc"}});
  bytes = patched(bytes, bytes.size() - 2, little_endian(5, 2)) + "words";
  EXPECT_EQ(ZipFile(bytes).read("a"), "abc");
}

TEST(ZipFile, ReadsTheRecordsOfZip64) {
  const auto small = zip_archive({{"a", "abc"}});
  const auto directory = small.find(little_endian(0x02014b50, 4));
  const auto end = small.find(little_endian(0x06054b50, 4));
  // Sizes and place stand in an extra field, the directory's place in a record of its own.
  const auto extra =
      little_endian(1, 2) + little_endian(24, 2) + little_endian(3, 8) + little_endian(3, 8) + little_endian(0, 8);
  auto entry = small.substr(directory, end - directory) + extra;
  entry = patched(entry, 20, std::string(8, '\xFF'));
  entry = patched(entry, 30, little_endian(extra.size(), 2));
  entry = patched(entry, 42, std::string(4, '\xFF'));
  const auto record = little_endian(0x06064b50, 4) + std::string(28, '\0') + little_endian(1, 8) +
                      little_endian(entry.size(), 8) + little_endian(directory, 8);
  const auto locator = little_endian(0x07064b50, 4) + std::string(4, '\0') +
                       little_endian(directory + entry.size(), 8) + little_endian(1, 4);
  const auto last = patched(small.substr(end), 10, std::string(10, '\xFF'));
  const auto bytes = small.substr(0, directory) + entry + record + locator + last;
  EXPECT_EQ(ZipFile(bytes).read("a"), "abc");
}

TEST(ZipFile, RefusesAnArchiveCutShortAtAnyPlace) {
  const auto bytes = zip_archive({{"top/a", "abc"}, {"top/b", "defg"}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(refusal_of_member(bytes.substr(0, size), "top/a"), "") << size;
  }
}

TEST(ZipFile, NamesTheMemberThatIsWrong) {
  const auto bytes = zip_archive({{"a", "abc"}});
  const auto directory = bytes.find(little_endian(0x02014b50, 4));
  EXPECT_EQ(refusal_of_member(bytes, "b\n"), "the archive has no member 'b\\x0a'");
  EXPECT_EQ(refusal_of_member(patched(bytes, 31, "x"), "a"), "the archive's member 'a' has another checksum");
  EXPECT_EQ(refusal_of_member(patched(bytes, 0, "x"), "a"), "the archive's member 'a' is not where it should be");
  EXPECT_EQ(
      refusal_of_member(patched(bytes, directory + 10, "\x08"), "a"),
      "the archive's member 'a' is compressed, which torch.save never does");
  EXPECT_EQ(refusal_of_member(patched(bytes, directory + 42, "\xFF\xFF\xFF\x7F"), "a"), "it points beyond its end");
}

}  // namespace
}  // namespace sgdph::test::zip_file_test
