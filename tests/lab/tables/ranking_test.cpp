#include "tables/ranking.h"

#include <gtest/gtest.h>

namespace sgdph::lab::tables::ranking_test {
namespace {

TEST(RankAgreement, CountsSwappedPairs) {
  const auto same = rank_agreement({1, 2, 3}, {10, 20, 30});
  EXPECT_EQ(same.pairs, 3U);
  EXPECT_EQ(same.swapped, 0U);
  EXPECT_DOUBLE_EQ(same.tau, 1);
  EXPECT_EQ(same.words(), "the paper's ranking");
  const auto one = rank_agreement({1, 3, 2, 4}, {1, 2, 3, 4});
  EXPECT_EQ(one.swapped, 1U);
  EXPECT_NEAR(one.tau, 4. / 6, 1e-15);
  EXPECT_EQ(one.words(), "mostly the paper's ranking: 1 of 6 pairs swapped");
  const auto opposite = rank_agreement({3, 2, 1}, {1, 2, 3});
  EXPECT_DOUBLE_EQ(opposite.tau, -1);
  EXPECT_EQ(opposite.words(), "nearly the opposite of the paper's ranking: 3 of 3 pairs swapped");
}

// 5 ordered pairs of ours, 6 of the paper: 5 / sqrt(5 * 6).
TEST(RankAgreement, TiesAreLeftOutAsInTauB) {
  const auto tied = rank_agreement({1, 2, 2, 4}, {1, 3, 2, 4});
  EXPECT_EQ(tied.pairs, 5U);
  EXPECT_EQ(tied.swapped, 0U);
  EXPECT_NEAR(tied.tau, 0.9128709291752769, 1e-15);
}

TEST(RankAgreement, WithNothingToCompareSaysSo) {
  EXPECT_EQ(rank_agreement({}, {}).words(), "no ranking to compare");
  EXPECT_EQ(rank_agreement({1}, {1}).words(), "no ranking to compare");
  EXPECT_EQ(rank_agreement({1, 1}, {1, 2}).words(), "no ranking to compare");
}

TEST(Ranks, EqualFiguresShareTheBetterRank) {
  EXPECT_EQ(ranks_of({70, 72, 70, 68}, true), (std::vector<size_t>{2, 1, 2, 4}));
  EXPECT_EQ(ranks_of({1, 2.2, 1.1}, false), (std::vector<size_t>{1, 3, 2}));
}

}  // namespace
}  // namespace sgdph::lab::tables::ranking_test
