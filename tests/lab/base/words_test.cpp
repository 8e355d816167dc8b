#include "base/words.h"

#include <gtest/gtest.h>

namespace sgdph::lab {
namespace {

using Words = std::vector<std::string>;

TEST(Words, StandBetweenCommasAndNoneIsLost) {
  EXPECT_EQ(words_between_commas("sgdm,adam"), (Words{"sgdm", "adam"}));
  EXPECT_EQ(words_between_commas("sgdm"), (Words{"sgdm"}));
  EXPECT_EQ(words_between_commas(",a,,"), (Words{"", "a", "", ""}));
  EXPECT_EQ(words_between_commas(""), (Words{""}));
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

}  // namespace
}  // namespace sgdph::lab
