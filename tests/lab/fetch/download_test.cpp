#include "fetch/download.h"
#include "lab/fetch/served.h"

#include <gtest/gtest.h>

namespace sgdph::lab::fetch::download_test {
namespace {

using namespace std::chrono_literals;
using test::contains;
using test::error_of;
using test::HttpResource;
using test::kSize;
using test::noise;
using Download = test::ServedFile;
using Names = std::vector<std::string>;

TEST_F(Download, BringsTheWholeFileAndLeavesNothingElse) {
  server_.serve("/file", resource());
  int64_t last = 0;
  int64_t total = 0;
  options_.progress = [&](int64_t bytes, int64_t of) {
    EXPECT_GE(bytes, last);
    last = bytes;
    total = of;
  };
  get();
  EXPECT_EQ(read_file(target_), noise(kSize));
  EXPECT_EQ(scratch_.names(), Names{"file"});
  EXPECT_EQ(last, kSize);
  EXPECT_EQ(total, kSize);
}

TEST_F(Download, RefusesAFileThatIsTooLargeForWhatItShouldBe) {
  options_.max_bytes = kSize - 1;
  server_.serve("/file", resource());
  EXPECT_TRUE(contains(error_of([this] { get(); }), "larger than 299999 bytes"));
  EXPECT_EQ(scratch_.names(), Names{});
  options_.max_bytes = kSize;
  get();
  EXPECT_EQ(read_file(target_), noise(kSize));
}

TEST_F(Download, SaysThatAFileIsNotThereAndDoesNotTryAgain) {
  options_.retries = 3;
  auto missing = resource();
  missing.statuses = {404, 404};
  server_.serve("/file", missing);
  EXPECT_TRUE(contains(error_of([this] { get(); }), "the server answers 404"));
  EXPECT_EQ(server_.requests("/file"), 1);
  EXPECT_EQ(scratch_.names(), Names{});
}

TEST_F(Download, TriesAgainWhenTheServerIsBusy) {
  options_.retries = 2;
  auto busy = resource();
  busy.statuses = {503, 500};
  server_.serve("/file", busy);
  get();
  EXPECT_EQ(server_.requests("/file"), 3);
  EXPECT_EQ(read_file(target_), noise(kSize));
}

TEST_F(Download, GivesUpWhenTheServerStaysBusy) {
  options_.retries = 2;
  auto busy = resource();
  busy.statuses = {503, 503, 503, 503};
  server_.serve("/file", busy);
  EXPECT_TRUE(contains(error_of([this] { get(); }), "503"));
  EXPECT_EQ(server_.requests("/file"), 3);
}

TEST_F(Download, NoticesFewerBytesThanAnnouncedAndGivesUpInTheEnd) {
  options_.retries = 2;
  auto liar = resource();
  liar.claimed_bytes = kSize + 10;
  server_.serve("/file", liar);
  EXPECT_NE(error_of([this] { get(); }), "");
  EXPECT_FALSE(std::filesystem::exists(target_));
}

TEST_F(Download, NoticesMoreBytesThanAnnouncedByTheChecksum) {
  test::write_bytes(scratch_ / "model", noise(kSize));
  const auto checksum = file_checksum(scratch_ / "model", DigestKind::Sha256);
  auto liar = resource();
  liar.claimed_bytes = kSize - 10;
  server_.serve("/file", liar);
  EXPECT_TRUE(contains(error_of([&] { get("/file", checksum); }), checksum.text()));
  EXPECT_EQ(scratch_.names(), Names{"model"});
}

TEST_F(Download, RemovesAFileWithAWrongChecksumAndSaysBoth) {
  server_.serve("/file", resource());
  const auto expected = Checksum::parse("md5:00000000000000000000000000000000");
  const auto message = error_of([&] { get("/file", expected); });
  test::write_bytes(scratch_ / "model", noise(kSize));
  EXPECT_TRUE(contains(message, file_checksum(scratch_ / "model", DigestKind::Md5).text())) << message;
  EXPECT_TRUE(contains(message, expected.text())) << message;
  EXPECT_EQ(scratch_.names(), Names{"model"});
}

TEST_F(Download, FollowsARedirect) {
  server_.serve("/file", resource());
  HttpResource moved;
  moved.redirect = server_.url("/file");
  moved.etag = "\"of the redirect\"";
  server_.serve("/moved", moved);
  get("/moved");
  EXPECT_EQ(read_file(target_), noise(kSize));
}

TEST_F(Download, RefusesARedirectToALocalFile) {
  test::write_bytes(scratch_ / "secret", "secret");
  HttpResource wicked;
  wicked.redirect = "file://" + (scratch_ / "secret").string();
  server_.serve("/file", wicked);
  EXPECT_NE(error_of([this] { get(); }), "");
  EXPECT_EQ(scratch_.names(), Names{"secret"});
}

TEST_F(Download, RefusesRedirectsInALoop) {
  HttpResource loop;
  loop.redirect = server_.url("/file");
  server_.serve("/file", loop);
  EXPECT_TRUE(contains(error_of([this] { get(); }), "redirect"));
  EXPECT_LE(server_.requests("/file"), 11);
}

TEST_F(Download, CopiesALocalFileThatWasAskedFor) {
  test::write_bytes(scratch_ / "source", noise(kSize));
  download("file://" + (scratch_ / "source").string(), target_, {}, options_);
  EXPECT_EQ(read_file(target_), noise(kSize));
  EXPECT_NE(error_of([&] { download("file://" + (scratch_ / "none").string(), target_, {}, options_); }), "");
}

TEST_F(Download, RefusesOtherProtocols) {
  EXPECT_TRUE(contains(error_of([this] { download("ftp://127.0.0.1/x", target_, {}, options_); }), "disabled"));
}

TEST_F(Download, GivesUpAConnectionThatStalls) {
  auto stalls = resource();
  stalls.stall_after = 1000;
  server_.serve("/file", stalls);
  options_.stall_timeout = 1s;
  EXPECT_NE(error_of([this] { get(); }), "");
  EXPECT_EQ(std::filesystem::file_size(part_), 1000);
  EXPECT_FALSE(std::filesystem::exists(target_));
}

TEST_F(Download, SaysThatNobodyAnswers) {
  std::string url;
  { url = test::HttpServer().url("/file"); }
  EXPECT_TRUE(contains(error_of([&] { download(url, target_, {}, options_); }), "cannot download " + url));
}

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
}  // namespace sgdph::lab::fetch::download_test
