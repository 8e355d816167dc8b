#include "formats/idx.h"
#include "support/checks.h"
#include "support/sample_data.h"

#include <gtest/gtest.h>

namespace sgdph::test::idx_test {
namespace {

using namespace sgdph::lab;
using namespace sgdph::lab::formats;
using namespace std::string_literals;

std::string idx_error(const std::string& bytes) {
  return error_of([&] { parse_idx(bytes, "x"); });
}

TEST(Idx, GivesSizesAndValues) {
  const auto array = parse_idx(idx_bytes({2, 3}, "abcdef"), "x");
  EXPECT_EQ(array.sizes, (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(array.data, "abcdef");
}

TEST(Idx, ReadsCompressedAndPlainFilesAlike) {
  const TempFolder folder;
  const auto bytes = idx_bytes({300, 1000}, std::string(300000, 'v'));
  write_bytes(folder / "a.gz", gzip(bytes));
  write_bytes(folder / "a", bytes);
  EXPECT_EQ(read_idx_file(folder / "a.gz").data, std::string(300000, 'v'));
  EXPECT_EQ(read_idx_file(folder / "a").data, std::string(300000, 'v'));
}

TEST(Idx, RefusesEachBadHeader) {
  EXPECT_EQ(idx_error("\0\0\x08"s), "x: 3 bytes are too few for an idx file; get the file again");
  EXPECT_EQ(
      idx_error("PK\x08\x01"),
      "x is not an idx file: it begins with the bytes 80 75 instead of 0 0; get the file again");
  EXPECT_EQ(idx_error("\0\0\x0D\x01"s), "x: idx type 13 instead of 8, unsigned bytes; get the file again");
  EXPECT_EQ(idx_error("\0\0\x08\0"s), "x: an idx array of 0 dimensions instead of 1 to 4; get the file again");
  EXPECT_EQ(idx_error("\0\0\x08\xFF"s), "x: an idx array of 255 dimensions instead of 1 to 4; get the file again");
  EXPECT_EQ(
      idx_error("\0\0\x08\x02\0\0\0\x01"s),
      "x is truncated: the idx header of 2 dimensions takes 12 bytes, there are 8; get the file again");
}

TEST(Idx, RefusesTooFewAndTooManyValues) {
  EXPECT_EQ(
      idx_error(idx_bytes({2, 3}, "abcde")),
      "x is truncated: its header announces 2 x 3 values, 5 follow; get the file again");
  EXPECT_EQ(
      idx_error(idx_bytes({2, 3}, "abcdefg")),
      "x has trailing bytes: its header announces 2 x 3 values, 7 follow; get the file again");
}

TEST(Idx, RefusesSizesWhoseProductOverflows) {
  constexpr uint32_t kHalf = 1U << 31;
  // The product modulo 2^64 is 0, as many as follow.
  EXPECT_TRUE(contains(idx_error(idx_bytes({kHalf, kHalf, 4}, "")), "is truncated: its header announces 2147483648 x"));
  EXPECT_TRUE(contains(idx_error(idx_bytes({~0U, ~0U, ~0U, ~0U}, "ab")), "is truncated"));
  EXPECT_EQ(parse_idx(idx_bytes({~0U, 0, ~0U}, ""), "x").data, "");
}

TEST(Idx, NamesADamagedOrMissingFile) {
  const TempFolder folder;
  auto packed = gzip(idx_bytes({100, 100}, std::string(10000, 'v')));
  write_bytes(folder / "short.gz", packed.substr(0, packed.size() - 9));
  const auto text = error_of([&] { read_idx_file(folder / "short.gz"); });
  EXPECT_TRUE(contains(text, "short.gz is damaged: unpacking stops after")) << text;
  packed[packed.size() - 5] ^= 1;  // of the checksum
  write_bytes(folder / "flipped.gz", packed);
  EXPECT_TRUE(contains(error_of([&] { read_idx_file(folder / "flipped.gz"); }), "flipped.gz is damaged"));
  EXPECT_TRUE(contains(error_of([&] { read_idx_file(folder / "none"); }), "/none: No such file"));
}

}  // namespace
}  // namespace sgdph::test::idx_test
