#include "formats/bytes.h"

#include <gtest/gtest.h>

namespace sgdph::test::bytes_test {
namespace {

using namespace sgdph::lab;
using namespace sgdph::lab::formats;
using namespace std::string_literals;

TEST(Bytes, NumbersAreLowestByteFirst) {
  EXPECT_EQ(little_endian(0x01020304, 4), "\x04\x03\x02\x01");
  EXPECT_EQ(little_endian(0x01020304, 2), "\x04\x03");
  EXPECT_EQ(little_endian(~uint64_t{0}, 8), std::string(8, '\xFF'));
  EXPECT_EQ(from_little_endian("\x04\x03\x02\x01"), 0x01020304U);
  EXPECT_EQ(from_little_endian("\0\0\0\0\0\0\0\x80"s), uint64_t{1} << 63U);
  EXPECT_EQ(from_little_endian(""), 0U);
}

TEST(Bytes, Crc32GivesTheUsualCheckValue) {
  EXPECT_EQ(crc32("123456789"), 0xCBF43926U);
  EXPECT_EQ(crc32(""), 0U);
}

// RFC 3720, appendix B.4, and the usual check value.
TEST(Bytes, Crc32cGivesThePublishedVectors) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(crc32c(rising), 0x46DD794EU);
  EXPECT_EQ(crc32c(std::string(rising.rbegin(), rising.rend())), 0x113FDB5CU);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(ByteReader, ReadsInOrder) {
  ByteReader reader(
      "\x01\x02\x03"
      "abc\nrest");
  EXPECT_EQ(reader.number(1), 1U);
  EXPECT_EQ(reader.number(2), 0x0302U);
  EXPECT_EQ(reader.take_until('\n'), "abc");
  EXPECT_EQ(reader.position(), 7U);
  EXPECT_EQ(reader.take(4), "rest");
  EXPECT_EQ(reader.take(0), "");
}

TEST(ByteReader, RefusesWhatLiesOutside) {
  EXPECT_THROW(ByteReader("abc", 4), DamagedFile);
  ByteReader reader("abc", 1);
  EXPECT_THROW(reader.number(4), DamagedFile);
  EXPECT_THROW(reader.take(~uint64_t{0}), DamagedFile);
  EXPECT_THROW(reader.take_until('x'), DamagedFile);
  EXPECT_EQ(reader.take(2), "bc");  // a refusal moves nothing
}

}  // namespace
}  // namespace sgdph::test::bytes_test
