#include "formats/pickle.h"
#include "formats/bytes.h"

#include <gtest/gtest.h>

namespace sgdph::test::pickle_test {
namespace {

using namespace std::string_literals;
using lab::formats::DamagedFile;
using lab::formats::Pickle;
using Kind = Pickle::Kind;

TEST(Pickle, GivesPlainValues) {
  // pickle.dumps([None, True, -2, 300, 'ab', (1, b'x')], 2), without the memo
  const auto bytes =
      "\x80\x02](N\x88J\xFE\xFF\xFF\xFFM\x2C\x01X\x02\0\0\0abK\x01"
      "C\x01x\x86"
      "e."s;
  const Pickle pickle(bytes);
  const auto& list = pickle.top();
  ASSERT_EQ(list.kind, Kind::List);
  ASSERT_EQ(list.parts.size(), 6U);
  EXPECT_EQ(list.parts[0]->kind, Kind::None);
  EXPECT_EQ(list.parts[1]->kind, Kind::Bool);
  EXPECT_EQ(list.parts[1]->integer, 1);
  EXPECT_EQ(list.parts[2]->integer, -2);
  EXPECT_EQ(list.parts[3]->integer, 300);
  EXPECT_EQ(list.parts[4]->text, "ab");
  ASSERT_EQ(list.parts[5]->kind, Kind::Tuple);
  EXPECT_EQ(list.parts[5]->parts[1]->kind, Kind::Bytes);
}

TEST(Pickle, LongIntegersKeepTheirSign) {
  const auto value = [](const std::string& bytes) { return Pickle(bytes).top().integer; };
  EXPECT_EQ(value("\x8a\x00."s), 0);
  EXPECT_EQ(value("\x8a\x01\xFF."s), -1);
  EXPECT_EQ(value("\x8a\x02\xFF\x00."s), 255);
  EXPECT_EQ(value("\x8a\x08\0\0\0\0\0\0\0\x80."s), INT64_MIN);
  EXPECT_EQ(Pickle("\x8a\x09\0\0\0\0\0\0\0\0\x01."s).top().kind, Kind::Bytes);
}

TEST(Pickle, ADictHasKeysAndValuesInTurn) {
  const auto bytes = "}(X\x01\0\0\0aK\x01X\x01\0\0\0bK\x02u."s;
  const Pickle pickle(bytes);
  ASSERT_EQ(pickle.top().kind, Kind::Dict);
  ASSERT_EQ(pickle.top().parts.size(), 4U);
  EXPECT_EQ(pickle.top().parts[2]->text, "b");
  EXPECT_EQ(pickle.top().parts[3]->integer, 2);
}

TEST(Pickle, ACallIsItsNameAndArgumentsAndIsNotRun) {
  const auto bytes = "cos\nsystem\nX\x02\0\0\0ls\x85R."s;
  const Pickle pickle(bytes);
  ASSERT_EQ(pickle.top().kind, Kind::Call);
  EXPECT_TRUE(pickle.top().parts[0]->is_global("os", "system"));
  EXPECT_EQ(pickle.top().parts[1]->parts[0]->text, "ls");
}

TEST(Pickle, WhatWasKeptComesBackAsTheSameValue) {
  const auto bytes = "]q\x05h\x05h\x05\x86."s;
  const Pickle pickle(bytes);
  ASSERT_EQ(pickle.top().parts.size(), 2U);
  EXPECT_EQ(pickle.top().parts[0], pickle.top().parts[1]);
}

TEST(Pickle, RefusesWhatMakesNoSense) {
  for (const auto& bytes :
       {""s, "."s, "N"s, "t."s, "(."s, "h\x01."s, "K"s, "X\xFF\xFF\xFF\xFFx."s, "Na."s, "]N\x86s."s, "\x7F."s, "}(Nu."s,
        "(N0t0."s}) {
    EXPECT_THROW(Pickle{bytes}, DamagedFile) << bytes;
  }
}

}  // namespace
}  // namespace sgdph::test::pickle_test
