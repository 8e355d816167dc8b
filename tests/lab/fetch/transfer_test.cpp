#include "fetch/transfer.h"

#include <gtest/gtest.h>

namespace sgdph::lab::fetch::transfer_test {
namespace {

TEST(ATransfer, SaysHowFarAndHowFast) {
  TransferText text;
  EXPECT_EQ(text.at(0, 100000000, 5), "0.0 of 100.0 MB");
  EXPECT_EQ(text.at(50000000, 100000000, 15), "50.0 of 100.0 MB  5.0 MB/s");
  EXPECT_EQ(text.at(50000000, 0, 15), "50.0 MB  5.0 MB/s");
}

TEST(ATransfer, ThatIsContinuedHasTheSpeedOfWhatIsNew) {
  TransferText text;
  EXPECT_EQ(text.at(40000000, 100000000, 0), "40.0 of 100.0 MB");
  EXPECT_EQ(text.at(50000000, 100000000, 10), "50.0 of 100.0 MB  1.0 MB/s");
}

TEST(ATransfer, ThatStartsAnewIsTimedAnew) {
  TransferText text;
  text.at(40000000, 100000000, 0);
  EXPECT_EQ(text.at(1000000, 100000000, 10), "1.0 of 100.0 MB");
  EXPECT_EQ(text.at(3000000, 100000000, 11), "3.0 of 100.0 MB  2.0 MB/s");
}

}  // namespace
}  // namespace sgdph::lab::fetch::transfer_test
