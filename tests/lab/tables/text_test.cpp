#include "tables/text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sgdph::lab::tables::text_test {
namespace {

TEST(FigureText, IsADashForWhatIsNotKnown) {
  EXPECT_EQ(ratio_text(1.333), "1.33x");
  EXPECT_EQ(ratio_text(0), "-");
  EXPECT_EQ(ratio_text(NAN), "-");
  EXPECT_EQ(decimals_text(0.825), "0.82");
  EXPECT_EQ(decimals_text(NAN), "-");
  EXPECT_EQ(percent_text(2. / 3), "67 %");
  EXPECT_EQ(percent_text(NAN), "-");
  EXPECT_EQ(difference_text(1.25), "+1.25");
  EXPECT_EQ(difference_text(-1.25), "-1.25");
  EXPECT_EQ(difference_text(std::nullopt), "-");
}

TEST(FigureText, OfAMeanHasItsDeviationIfThereAreSeveral) {
  EXPECT_EQ(spread_text(statistic({70, 72})), "71.00 +- 1.41");
  EXPECT_EQ(spread_text(statistic({70})), "70.00");
  EXPECT_EQ(spread_text(statistic({})), "-");
  EXPECT_EQ(spread_text(78.51, 0.2), "78.51 +- 0.20");
  EXPECT_EQ(spread_text(78.51, std::nullopt), "78.51");
}

TEST(FigureText, ForProgramsHasEveryDigitOrNothing) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1. / 3), "0.3333333333333333");
  EXPECT_EQ(number_text(std::nullopt), "");
  EXPECT_EQ(number_text(NAN), "");
}

TEST(FigureText, OfRunsNamesThoseThatDiverged) {
  EXPECT_EQ(runs_text(2, 3, 0), "2/3");
  EXPECT_EQ(runs_text(2, 3, 1), "2/3, 1 diverged");
}

}  // namespace
}  // namespace sgdph::lab::tables::text_test
