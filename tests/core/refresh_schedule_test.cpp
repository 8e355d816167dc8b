// Which blocks are refreshed for a step, and when a turn passes.

#include "sgd_ph/refresh_schedule.h"

#include <gtest/gtest.h>

namespace sgdph::sgd_ph::refresh_schedule_test {
namespace {

using Slots = std::vector<size_t>;

const SGDPHOptions kCyclic = SGDPHOptions().refresh(Refresh::Cyclic);

/// Of eight slots, blocks that take turns; `passing` ones take turns as well, but are first-order.
std::vector<Standing> members(const Slots& blocks, const Slots& passing = {}) {
  std::vector<Standing> standings(8);
  for (const auto slot : blocks) standings[slot] = {/*block=*/true, /*has_turn=*/true, ""};
  for (const auto slot : passing) standings[slot] = {/*block=*/false, /*has_turn=*/true, ""};
  return standings;
}

/// A step in which what is due is measured; returns what was due.
Slots step(RefreshSchedule& schedule, const std::vector<Standing>& standings, const SGDPHOptions& options = kCyclic) {
  const auto due = schedule.due(options, standings);
  schedule.pass_turn(options, standings, /*measured=*/!due.empty());
  schedule.count_step();
  return due;
}

TEST(RefreshSchedule, VisitsEveryMemberInOrderAndStartsAnew) {
  RefreshSchedule schedule;
  const auto standings = members({1, 4, 6});
  Slots visited;
  for (int t = 1; t <= 7; ++t) {
    const auto due = step(schedule, standings);
    ASSERT_EQ(due.size(), 1);
    visited.push_back(due[0]);
    EXPECT_EQ(schedule.exponent(standings), t / 3 + 1) << "the published exponent";
  }
  EXPECT_EQ(visited, (Slots{1, 4, 6, 1, 4, 6, 1}));
}

TEST(RefreshSchedule, GoesOnWithTheNextMemberWhenOneLeavesOrJoins) {
  RefreshSchedule schedule;
  step(schedule, members({1, 4, 6}));
  EXPECT_EQ(schedule.due(kCyclic, members({1, 6})), Slots{6}) << "4 has left";
  EXPECT_EQ(schedule.due(kCyclic, members({1, 2, 6})), Slots{2}) << "2 has joined";
  EXPECT_EQ(schedule.due(kCyclic, members({1})), Slots{1});
  EXPECT_EQ(schedule.due(kCyclic, members({})), Slots{});
  EXPECT_EQ(schedule.exponent(members({})), 2) << "defined, though it serves nothing";
}

TEST(RefreshSchedule, TurnsOfAMemberThatLeftDoNotCount) {
  RefreshSchedule schedule;
  EXPECT_EQ(step(schedule, members({1, 4, 6})), Slots{1});
  schedule.leave(kCyclic);
  EXPECT_EQ(step(schedule, members({4, 6})), Slots{4});
  EXPECT_EQ(schedule.counts().turns, 1);
  EXPECT_EQ(schedule.exponent(members({4, 6})), 1);
}

TEST(RefreshSchedule, ABlockKeepsItsTurnUntilItIsMeasured) {
  RefreshSchedule schedule;
  const auto standings = members({2, 3});
  schedule.pass_turn(kCyclic, standings, /*measured=*/false);
  schedule.count_step();
  EXPECT_EQ(schedule.counts().turns, 0);
  EXPECT_EQ(schedule.due(kCyclic, standings), Slots{2});
}

TEST(RefreshSchedule, AFirstOrderMemberLetsItsTurnPass) {
  RefreshSchedule schedule;
  const auto standings = members({2}, {5});
  EXPECT_EQ(step(schedule, standings), Slots{2});
  EXPECT_EQ(step(schedule, standings), Slots{});
  EXPECT_EQ(schedule.counts().turns, 2);
  EXPECT_EQ(step(schedule, standings), Slots{2});
}

TEST(RefreshSchedule, BetweenRefreshStepsNothingIsDueAndNoTurnPasses) {
  RefreshSchedule schedule;
  const auto options = SGDPHOptions(kCyclic).refresh_every(3);
  const auto standings = members({0, 7}, {4});
  std::vector<Slots> due;
  for (int t = 0; t < 9; ++t) due.push_back(step(schedule, standings, options));
  EXPECT_EQ(due, (std::vector<Slots>{{0}, {}, {}, {}, {}, {}, {7}, {}, {}})) << "the fourth step is the turn of 4";
  EXPECT_EQ(schedule.counts().turns, 3);
  EXPECT_EQ(schedule.counts().step, 9);
}

TEST(RefreshSchedule, WithoutRotationEveryBlockIsDueAndTurnsStandStill) {
  for (const auto refresh : {Refresh::All, Refresh::Joint}) {
    const auto options = SGDPHOptions().probe(Probe::Rademacher).refresh(refresh);
    RefreshSchedule schedule;
    auto standings = members({1, 2, 6}, {5});
    standings[3] = {/*block=*/true, /*has_turn=*/false, ""};
    EXPECT_EQ(step(schedule, standings, options), (Slots{1, 2, 6})) << "neither a first-order one nor a frozen block";
    schedule.leave(options);
    EXPECT_EQ(step(schedule, standings, options), (Slots{1, 2, 6}));
    EXPECT_EQ(schedule.counts().turns, 0);
    EXPECT_EQ(schedule.counts().cursor, 0);
  }
}

TEST(RefreshSchedule, SpreadGivesEachRankOneOfNeighboursAndDividesARoundEvenly) {
  const auto options = SGDPHOptions().probe(Probe::Rademacher).refresh(Refresh::Spread);
  const auto standings = members({0, 1, 2, 4, 5, 6, 7}, {3});
  const std::vector<std::pair<int64_t, std::vector<Slots>>> rounds{
      {1, {{0}, {1}, {2}, {4}, {5}, {6}, {7}, {0}}},
      {2, {{0, 1}, {2, 4}, {5, 6}, {7}, {0, 1}}},
      {3, {{0, 1, 2}, {4, 5}, {6, 7}, {0, 1, 2}}},
      {5, {{0, 1, 2, 4}, {5, 6, 7}, {0, 1, 2, 4}}},
      {9, {{0, 1, 2, 4, 5, 6, 7}, {0, 1, 2, 4, 5, 6, 7}}}};
  for (const auto& [ranks, expected] : rounds) {
    RefreshSchedule schedule;
    size_t turns = 0;
    for (const auto& slots : expected) {
      EXPECT_EQ(schedule.due(options, standings, ranks), slots) << ranks << " ranks";
      schedule.pass_turn(options, standings, /*measured=*/false, ranks);
      EXPECT_EQ(schedule.due(options, standings, ranks), slots) << "a turn is not lost when nothing is measured";
      schedule.pass_turn(options, standings, /*measured=*/true, ranks);
      turns += slots.size();
    }
    EXPECT_EQ(schedule.counts().turns, turns);
    const auto steps = static_cast<double>(expected.size() - 1);
    EXPECT_DOUBLE_EQ(RefreshSchedule::pace(options, standings, ranks), 7 / steps) << ranks << " ranks";
  }
  EXPECT_EQ(RefreshSchedule::pace(kCyclic, standings, 3), 1);
  EXPECT_EQ(RefreshSchedule::pace(options, members({}), 3), 1);
  EXPECT_EQ(RefreshSchedule().due(options, members({}), 3), Slots{});
}

TEST(RefreshSchedule, SpreadGoesOnWithOtherMembersAndRanks) {
  const auto options = SGDPHOptions().probe(Probe::Rademacher).refresh(Refresh::Spread);
  RefreshSchedule schedule;
  schedule.pass_turn(options, members({1, 4, 6}), true, 2);
  EXPECT_EQ(schedule.due(options, members({1, 4, 6}), 2), Slots{6});
  EXPECT_EQ(schedule.due(options, members({1, 4}), 2), (Slots{1, 4})) << "6 has left";
  EXPECT_EQ(schedule.due(options, members({1, 5, 6, 7}), 2), (Slots{5, 6}));
  EXPECT_EQ(schedule.due(options, members({1, 5, 6, 7}), 8), (Slots{5, 6, 7})) << "the rest of the round";
}

TEST(RefreshSchedule, GoesOnFromItsCounts) {
  RefreshSchedule schedule;
  const auto standings = members({1, 4, 6});
  for (int t = 0; t < 5; ++t) step(schedule, standings);
  RefreshSchedule resumed(schedule.counts());
  for (int t = 0; t < 5; ++t) {
    EXPECT_EQ(step(resumed, standings), step(schedule, standings));
    EXPECT_EQ(resumed.exponent(standings), schedule.exponent(standings));
  }
}

TEST(RefreshSchedule, IsThePublishedOneForOneBlockOnEveryStepOfTheAuthorsRule) {
  EXPECT_TRUE(RefreshSchedule::is_published(SGDPHOptions()));
  EXPECT_FALSE(RefreshSchedule::is_published(SGDPHOptions().rule(Rule::Paper).refresh(Refresh::Cyclic)));
  EXPECT_FALSE(RefreshSchedule::is_published(SGDPHOptions().refresh(Refresh::All)));
  EXPECT_FALSE(RefreshSchedule::is_published(SGDPHOptions().refresh_every(2)));
}

}  // namespace
}  // namespace sgdph::sgd_ph::refresh_schedule_test
