#include "base/text.h"

#include <gtest/gtest.h>

#include "support/checks.h"

namespace sgdph::lab::text_test {
namespace {

using Words = std::vector<std::string>;

TEST(Words, StandBetweenCommasAndNoneIsLost) {
  EXPECT_EQ(words_between_commas("sgdm,adam"), (Words{"sgdm", "adam"}));
  EXPECT_EQ(words_between_commas("sgdm"), (Words{"sgdm"}));
  EXPECT_EQ(words_between_commas(",a,,"), (Words{"", "a", "", ""}));
  EXPECT_EQ(words_between_commas(""), (Words{""}));
}

TEST(Words, OfAListPassOverBlanksAndACommaAtTheEnd) {
  EXPECT_EQ(words_of_list("sgdm, adam "), (Words{"sgdm", "adam"}));
  EXPECT_EQ(words_of_list("4,"), (Words{"4"}));
  EXPECT_EQ(words_of_list("4,,"), (Words{"4", ""}));
  EXPECT_EQ(words_of_list(",4"), (Words{"", "4"}));
  EXPECT_EQ(words_of_list(","), (Words{""}));
  EXPECT_EQ(words_of_list(""), (Words{""}));
}

TEST(Words, ANumberIsTheWholeWord) {
  EXPECT_EQ(number_from<int64_t>("-12"), -12);
  EXPECT_EQ(number_from<double>("1e-3"), 1e-3);
  for (const auto* word : {"", " 1", "1 ", "1x", "x", "+1", "1,2", "99999999999999999999"}) {
    EXPECT_FALSE(number_from<int64_t>(word)) << word;
  }
  EXPECT_FALSE(number_from<int64_t>("1.5"));
  EXPECT_FALSE(number_from<double>("1e999"));
}

TEST(Words, OfAShellAreQuotedWhereTheyMust) {
  EXPECT_EQ(shell_word("runs/a-b_c.1"), "runs/a-b_c.1");
  EXPECT_EQ(shell_word("l\u00e4ufe"), "l\u00e4ufe");
  EXPECT_EQ(shell_word("a run"), "'a run'");
  EXPECT_EQ(shell_word("a user's $(run)"), "'a user'\\''s $(run)'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(Times, ThatWereMeasuredAreNotRoundedUp) {
  EXPECT_EQ(measured_time_text(1.09), "1.1 s");
  EXPECT_EQ(measured_time_text(59.94), "59.9 s");
  EXPECT_EQ(measured_time_text(59.96), "1 min 00 s");
  EXPECT_EQ(measured_time_text(61.2), "1 min 01 s");
  EXPECT_EQ(measured_time_text(7260.4), "2 h 01 min");
}

TEST(Words, AreTrimmedAtBothEnds) {
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed(" \n"), "");
}

TEST(Words, NamedTwiceAreRefusedByName) {
  EXPECT_EQ(test::error_of([] { check_distinct<std::string>("--opts", {"a", "b", "a"}); }), "--opts: a is named twice");
  EXPECT_EQ(test::error_of([] { check_distinct<int64_t>("--seeds", {1, 7, 7}); }), "--seeds: 7 is named twice");
  EXPECT_EQ(test::error_of([] { check_distinct<int64_t>("--seeds", {1, 7, 17}); }), "");
}

TEST(ADuration, IsToldInTheUnitsThatMatter) {
  EXPECT_EQ(duration_text(-1), "0 s");
  EXPECT_EQ(duration_text(41.2), "42 s");
  EXPECT_EQ(duration_text(59.5), "1 min 00 s");
  EXPECT_EQ(duration_text(185), "3 min 05 s");
  EXPECT_EQ(duration_text(7800), "2 h 10 min");
}

TEST(ACount, HasItsPlural) {
  EXPECT_EQ(count_text(0, "run"), "0 runs");
  EXPECT_EQ(count_text(1, "run"), "1 run");
  EXPECT_EQ(count_text(2, "run"), "2 runs");
}

}  // namespace
}  // namespace sgdph::lab::text_test
