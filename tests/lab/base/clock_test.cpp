#include "base/clock.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sgdph::lab::clock_test {
namespace {

TEST(Clock, NeverGoesBack) {
  const double before = seconds_now();
  EXPECT_LE(before, seconds_now());
}

TEST(Clock, ReadsItsOwnStamps) {
  EXPECT_EQ(seconds_of_stamp("1970-01-02T00:00:01Z"), 86401);
  const double now = seconds_since_1970();
  EXPECT_NEAR(seconds_of_stamp(time_stamp()).value(), now, 2);
  for (const auto* text : {"", "yesterday", "2026-13-01T00:00:00Z", "2026-01-31"}) {
    EXPECT_FALSE(seconds_of_stamp(text)) << text;
  }
}

}  // namespace
}  // namespace sgdph::lab::clock_test
