#include "tables/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

namespace sgdph::lab::tables::statistics_test {
namespace {

TEST(Statistic, DeviationIsThatOfASample) {
  const auto figure = statistic({1, 2, 4});
  EXPECT_DOUBLE_EQ(figure.mean, 7. / 3);
  EXPECT_NEAR(figure.deviation, 1.5275252316519468, 1e-15);
  EXPECT_EQ(statistic({5}).deviation, 0);
  EXPECT_EQ(statistic({}).count, 0U);
}

TEST(Statistic, TheMedianPassesOverWhatIsNotFinite) {
  EXPECT_DOUBLE_EQ(median_known({NAN, 4, 1, INFINITY, 2, 3}), 2.5);
  EXPECT_TRUE(std::isnan(median_known({NAN})));
}

TEST(EvenlySpread, GoesFromTheFirstToTheLast) {
  EXPECT_EQ(evenly_spread(10, 4), (std::vector<size_t>{0, 3, 6, 9}));
  EXPECT_EQ(evenly_spread(5, 3), (std::vector<size_t>{0, 2, 4}));
  EXPECT_EQ(evenly_spread(3, 7), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(evenly_spread(9, 1), (std::vector<size_t>{0}));
  EXPECT_TRUE(evenly_spread(9, 0).empty());
  EXPECT_TRUE(evenly_spread(0, 3).empty());
}

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoMiddleOnes) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({}), 0);
}

TEST(MedianEstimate, IntervalIsThatOfTheTablesOfOrderStatistics) {
  // Ranks (from 1) of the sign test at 95 %: 6: 1-6, 9: 2-8, 10: 2-9, 20: 6-15, 25: 8-18.
  const std::vector<std::array<int, 3>> ranks{{6, 1, 6}, {9, 2, 8}, {10, 2, 9}, {20, 6, 15}, {25, 8, 18}};
  for (const auto& [n, low, high] : ranks) {
    std::vector<double> values(static_cast<size_t>(n));
    std::iota(values.rbegin(), values.rend(), 1.);
    const auto figure = median_figure(values);
    EXPECT_EQ(figure.low, low) << n;
    EXPECT_EQ(figure.high, high) << n;
    EXPECT_EQ(figure.value, (n + 1) / 2.) << n;
    EXPECT_EQ(figure.count, n);
  }
}

TEST(MedianEstimate, TwoValuesGiveNoInterval) {
  const auto figure = median_figure({1, 3});
  EXPECT_FALSE(figure.has_interval());
  EXPECT_EQ(figure.low, 2);
  EXPECT_EQ(figure.high, 2);
  EXPECT_TRUE(median_figure({1, 2, 3}).has_interval());
}

TEST(CycleEstimate, IsTheMeanOverPositionsOfTheMedians) {
  // An outlier at position 1 does not count.
  const auto figure = cycle_figure({{0, 3}, {1, 2}, {1, 2}, {1, 90}, {2, 1}}, 3);
  EXPECT_DOUBLE_EQ(figure.value, 2);
  EXPECT_EQ(figure.count, 5);
}

TEST(CycleEstimate, OfALinearCostIsExactFromFewEvenlySpreadPositions) {
  for (const int64_t step : {1, 5}) {
    std::vector<Sample> samples;
    for (int64_t i = step / 2; i < 40; i += step) samples.push_back({i, 10 - 0.2 * static_cast<double>(i)});
    EXPECT_NEAR(cycle_figure(samples, 40).value, 10 - 0.2 * 19.5, 1e-12) << step;
  }
}

TEST(CycleEstimate, WeighsStepsWithoutRefreshByTheirShare) {
  EXPECT_DOUBLE_EQ(cycle_figure({{0, 5}, {kNothingDue, 1}, {kNothingDue, 1}}, 1, 4).value, 2);
  EXPECT_DOUBLE_EQ(cycle_figure({{kNothingDue, 7}}, 3, 4).value, 7);
}

TEST(CycleEstimate, IntervalHoldsTheValueShrinksWithMoreStepsAndIsRepeatable) {
  const auto samples = [](int n) {
    std::vector<Sample> all;
    for (int i = 0; i < n; ++i) all.push_back({spread_position(i, 8), 1 + 0.1 * ((i * 7) % 11)});
    return all;
  };
  const auto few = cycle_figure(samples(12), 8);
  const auto many = cycle_figure(samples(200), 8);
  EXPECT_LT(few.low, few.value);
  EXPECT_GT(few.high, few.value);
  EXPECT_LT(many.high - many.low, few.high - few.low);
  EXPECT_EQ(cycle_figure(samples(12), 8).low, few.low);
}

TEST(SpreadPosition, VisitsEachPositionOnceInACycleAndEvenlyOnTheWay) {
  for (const int64_t positions : {1, 2, 3, 16, 18, 40, 106}) {
    std::set<int64_t> seen;
    for (int64_t visit = 0; visit < positions; ++visit) {
      const auto position = spread_position(visit, positions);
      ASSERT_TRUE(position >= 0 && position < positions);
      seen.insert(position);
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), positions);
  }
  for (const int64_t positions : {16, 40, 106}) {
    for (const int64_t visits : {3, 5, 8, 13}) {
      std::set<int64_t> seen;
      for (int64_t visit = 0; visit < visits; ++visit) seen.insert(spread_position(visit, positions));
      int64_t last = -1;
      int64_t gap = 0;
      for (const auto position : seen) {
        gap = std::max(gap, position - last);
        last = position;
      }
      gap = std::max(gap, positions - last);
      EXPECT_LE(gap, 2 * positions / visits + 2) << visits << " visits of " << positions;
    }
  }
}

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
}  // namespace sgdph::lab::tables::statistics_test
