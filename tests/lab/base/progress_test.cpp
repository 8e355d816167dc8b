#include "base/progress.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <functional>

#include "support/checks.h"

namespace sgdph::lab::progress_test {
namespace {

using test::contains;

/// What the action writes to standard output and to standard error.
std::pair<std::string, std::string> output_of(const std::function<void()>& action) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  action();
  auto out = testing::internal::GetCapturedStdout();
  return {std::move(out), testing::internal::GetCapturedStderr()};
}

TEST(TheTimeLeft, FollowsFromTheTimeTaken) {
  TimeLeft left;
  EXPECT_FALSE(left.at(0, 100));
  EXPECT_DOUBLE_EQ(left.at(0.25, 110).value(), 30);
  EXPECT_DOUBLE_EQ(left.at(0.5, 120).value(), 20);
  EXPECT_DOUBLE_EQ(left.at(1, 140).value(), 0);
}

TEST(TheTimeLeft, DoesNotCountWhatWasDoneBefore) {
  TimeLeft left;
  left.start(0.5, 100);
  EXPECT_DOUBLE_EQ(left.at(0.75, 110).value(), 10);
}

TEST(TheTimeLeft, IsEstimatedUntilSomethingIsMeasured) {
  TimeLeft left(200);
  EXPECT_DOUBLE_EQ(left.at(0, 0).value(), 200);
  EXPECT_DOUBLE_EQ(left.at(0.01, 50).value(), 198);
  EXPECT_DOUBLE_EQ(left.at(0.5, 50).value(), 50);
}

TEST(TheTimeLeft, BeginsAnewWithTheWork) {
  TimeLeft left;
  left.start(0.5, 0);
  EXPECT_FALSE(left.at(0, 100));
  EXPECT_DOUBLE_EQ(left.at(0.5, 110).value(), 10);
  EXPECT_FALSE(left.at(-1, 120));
}

TEST(ABar, IsRedrawnInPlaceAndTakenAway) {
  const auto [out, err] = output_of([] {
    Progress progress(ProgressStyle::Bar, 100, 40);
    progress.begin("first");
    progress.begin("second");
  });
  EXPECT_EQ(out, "");
  EXPECT_EQ(
      err,
      "[................]   0 %  about 40 s left  first\r\x1b[K[................]   1 %  about 40 s left  "
      "second\r\x1b[K");
}

TEST(ABar, IsRedrawnAtMostTenTimesASecond) {
  const auto [out, err] = output_of([] {
    Progress progress(ProgressStyle::Bar);
    for (int i = 0; i < 100; ++i) progress.at(0.5, "words");
  });
  EXPECT_EQ(err, "[########........]  50 %  words\r\x1b[K");
}

TEST(ABar, StandsBelowItsRows) {
  const auto [out, err] = output_of([] {
    Progress progress(ProgressStyle::Bar);
    progress.above("a\nb\n");
    progress.at(0);
  });
  EXPECT_EQ(err, "a\nb\n\r\x1b[2A\x1b[Ja\nb\n[................]   0 %\r\x1b[2A\x1b[J");
}

TEST(ABar, MakesRoomForLinesThatStay) {
  const auto [out, err] = output_of([] {
    Progress progress(ProgressStyle::Bar);
    progress.at(0);
    progress.line("a result");
    progress.note("a notice");
  });
  EXPECT_EQ(out, "a result\n");
  EXPECT_EQ(err, "[................]   0 %\r\x1b[Ka notice\n");
}

TEST(Lines, SayWhatBeginsAndNoMoreForHalfAMinute) {
  const auto [out, err] = output_of([] {
    Progress progress(ProgressStyle::Auto, 2);  // standard error is a file here
    EXPECT_FALSE(progress.is_live());
    progress.begin("first");
    progress.at(0.5, "words");
    progress.begin("second");
    progress.above("rows\n");
  });
  EXPECT_EQ(err, "first\nsecond\n");
}

TEST(Records, SayFractionWordsAndFigures) {
  const auto [out, err] = output_of([] {
    Progress progress(ProgressStyle::Machine);
    progress.start(0.25);
    progress.at(0.5, "epoch 1/2", {{"epoch", 1}});
    progress.line("a result");
  });
  const auto record = nlohmann::json::parse(out);
  EXPECT_EQ(record["fraction"], 0.5);
  EXPECT_EQ(record["words"], "epoch 1/2");
  EXPECT_EQ(record["epoch"], 1);
  EXPECT_GE(record["seconds_left"].get<double>(), 0);
  EXPECT_EQ(err, "");
}

TEST(Records, OfAChildAreItsPartOfTheParents) {
  const auto [out, err] = output_of([] {
    Progress progress(ProgressStyle::Machine, 4);
    progress.begin("first");
    progress.begin("second", 2);
    progress.relay({{"result", 1}});
    progress.relay({{"fraction", 0.5}, {"words", "epoch 1/2"}});
  });
  const auto record = nlohmann::json::parse(out);
  EXPECT_EQ(record["fraction"], 0.5);
  EXPECT_EQ(record["words"], "epoch 1/2");
}

TEST(QuietWork, SaysNothing) {
  const auto [out, err] = output_of([] {
    Progress progress(ProgressStyle::Quiet);
    progress.begin("first");
    progress.at(0.5, "words");
    progress.line("a result");
  });
  EXPECT_EQ(out + err, "");
}

}  // namespace
}  // namespace sgdph::lab::progress_test
