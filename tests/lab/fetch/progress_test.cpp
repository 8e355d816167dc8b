#include "fetch/progress.h"

#include <gtest/gtest.h>

namespace sgdph::lab::progress_test {
namespace {

TEST(Progress, GivesPercentageSpeedAndTimeLeft) {
  EXPECT_EQ(download_progress(50000000, 100000000, 0, 10), " 50 %  50.0 of 100.0 MB  5.0 MB/s  ETA 0:10");
  EXPECT_EQ(download_progress(50000000, 100000000, 40000000, 10), " 50 %  50.0 of 100.0 MB  1.0 MB/s  ETA 0:50");
  EXPECT_EQ(download_progress(1000000, 4000000000, 0, 1), "  0 %  1.0 of 4000.0 MB  1.0 MB/s  ETA 1:06:39");
  EXPECT_EQ(download_progress(5000000, 0, 0, 2), "5.0 MB  2.5 MB/s");
  EXPECT_EQ(download_progress(0, 100, 0, 0), "  0 %  0.0 of 0.0 MB");
}

}  // namespace
}  // namespace sgdph::lab::progress_test
