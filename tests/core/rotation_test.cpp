// Whose turn it is when one block is refreshed per step.

#include <sgdph/detail/rotation.h>

#include <gtest/gtest.h>

namespace sgdph::detail::rotation_test {
namespace {

TEST(Rotation, VisitsEveryMemberInOrderAndStartsAnew) {
  Rotation rotation;
  const std::vector<size_t> members{1, 4, 6};
  std::vector<size_t> visited;
  for (int t = 1; t <= 7; ++t) {
    visited.push_back(*rotation.next(members));
    rotation.pass(visited.back());
    EXPECT_EQ(rotation.exponent(members), t / 3 + 1) << "the published exponent";
  }
  EXPECT_EQ(visited, (std::vector<size_t>{1, 4, 6, 1, 4, 6, 1}));
}

TEST(Rotation, GoesOnWithTheNextMemberWhenOneLeavesOrJoins) {
  Rotation rotation;
  rotation.pass(*rotation.next({1, 4, 6}));
  EXPECT_EQ(rotation.next({1, 6}), 6) << "4 has left";
  EXPECT_EQ(rotation.next({1, 2, 6}), 2) << "2 has joined";
  EXPECT_EQ(rotation.next({1}), 1);
  EXPECT_FALSE(rotation.next({}).has_value());
  EXPECT_EQ(rotation.exponent({}), 2) << "defined, though it serves nothing";
}

TEST(Rotation, TurnsOfAMemberThatLeftDoNotCount) {
  Rotation rotation;
  rotation.pass(1);
  rotation.leave();
  rotation.pass(4);
  EXPECT_EQ(rotation.turns, 1);
  EXPECT_EQ(rotation.exponent({4, 6}), 1);
}

}  // namespace
}  // namespace sgdph::detail::rotation_test
