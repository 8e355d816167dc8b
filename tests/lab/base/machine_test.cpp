#include "base/machine.h"

#include <gtest/gtest.h>

namespace sgdph::lab::machine_test {
namespace {

double spent = 0;

TEST(ACoreWatch, TellsOfWaitingThatIsWorthAWordAndOnlyOnceInAWhile) {
  spent = 100;
  CoreWatch watch(0, [] { return std::optional(spent); });
  spent += 15;
  EXPECT_FALSE(watch.slowed(19)) << "too early to tell";
  EXPECT_DOUBLE_EQ(watch.slowed(30).value_or(0), 0.5);
  spent += 10;
  EXPECT_FALSE(watch.slowed(31));
  EXPECT_FALSE(watch.slowed(80)) << "a fifth of the time";
  spent += 30;
  EXPECT_DOUBLE_EQ(watch.slowed(120).value_or(0), 0.75);
}

TEST(ACoreWatch, SaysNothingWhereTheSystemDoesNot) {
  CoreWatch watch(0, [] { return std::optional<double>(); });
  EXPECT_FALSE(watch.slowed(1000));
}

TEST(ACoreWatch, ReadsWhatLinuxSaysOfTheThread) {
  const auto waited = CoreWatch::waited();
  if (!waited) GTEST_SKIP() << "this kernel does not say";
  EXPECT_GE(*waited, 0);
  EXPECT_LT(*waited, 1e6);
}

}  // namespace
}  // namespace sgdph::lab::machine_test
