#include "formats/event_file.h"
#include "base/files.h"
#include "support/checks.h"

#include <gtest/gtest.h>

namespace sgdph::test::event_file_test {
namespace {

using namespace sgdph::lab;
using namespace sgdph::lab::formats;
using namespace std::string_literals;

TEST(EventFile, ChecksumsAreMasked) {
  // CRC-32C rotated right by 15, plus the constant, modulo 2^32.
  EXPECT_EQ(masked_crc32c("123456789"), 0xC78AB0E5U);
}

TEST(EventFile, AnEventHasTheBytesProtobufWouldWrite) {
  EXPECT_EQ(version_event(1.5), "\x09\0\0\0\0\0\0\xF8\x3F\x1A\x0D"s + "brain.Event:2");
  EXPECT_EQ(
      scalar_event(1.5, 300, {{"a", 0.5}}),
      "\x09\0\0\0\0\0\0\xF8\x3F"s + "\x10\xAC\x02"s + "\x2A\x0A\x0A\x08\x0A\x01"s + "a\x15\0\0\0\x3F"s);
}

TEST(EventFile, TheLastStepIsFoundUpToTheFirstDamage) {
  const auto first = framed_record(version_event(1));
  const auto record = [](int64_t step) { return framed_record(scalar_event(1, step, {{"a", 1}})); };
  EXPECT_FALSE(last_event_step(""));
  EXPECT_FALSE(last_event_step(first));
  EXPECT_EQ(last_event_step(first + record(7) + record(300)), 300);
  const auto whole = first + record(7) + record(300);
  for (size_t cut = 1; cut < record(300).size(); ++cut) {
    EXPECT_EQ(last_event_step(whole.substr(0, whole.size() - cut)), 7) << cut;
  }
  for (size_t at = first.size() + record(7).size(); at < whole.size(); ++at) {
    auto damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_EQ(last_event_step(damaged), 7) << at;
  }
  // A length beyond the file, with a checksum that fits it.
  auto length = "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s;
  const auto sum = masked_crc32c(length);
  for (unsigned i = 0; i < 4; ++i) length += static_cast<char>((sum >> (8 * i)) & 0xFFU);
  EXPECT_FALSE(last_event_step(length + std::string(100, 'x')));
}

TEST(EventFile, FilesOfOneSecondHaveNamesOfTheirOwn) {
  const TempFolder folder;
  EventFile one(folder.path(), 1000);
  EventFile two(folder.path(), 1000);
  EXPECT_NE(one.path(), two.path());
  EXPECT_LT(one.path(), two.path());
  EXPECT_TRUE(is_event_file(one.path()));
  EXPECT_FALSE(is_event_file("log.jsonl"));
  one.append(1001, 5, {{"a", 1}});
  EXPECT_EQ(last_event_step(read_file(one.path())), 5);
  EXPECT_FALSE(last_event_step(read_file(two.path())));
}

}  // namespace
}  // namespace sgdph::test::event_file_test
