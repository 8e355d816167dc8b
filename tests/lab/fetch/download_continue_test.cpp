// A download that was cut off, and goes on.

#include "fetch/download.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "lab/fetch/served.h"

namespace sgdph::lab::fetch::download_continue_test {
namespace {

using test::contains;
using test::error_of;
using test::HttpResource;
using test::kSize;
using test::noise;
using ContinuedDownload = test::ServedFile;
using Names = std::vector<std::string>;

TEST_F(ContinuedDownload, ContinuesAfterACutWithoutSendingBytesAgain) {
  get_half();
  EXPECT_EQ(scratch_.names(), (Names{"file.part", "file.part.json"}));
  get();
  EXPECT_EQ(read_file(target_), noise(kSize));
  EXPECT_EQ(server_.body_bytes("/file"), kSize);
  EXPECT_EQ(server_.ranges("/file").back(), "bytes=150000-");
  EXPECT_EQ(scratch_.names(), Names{"file"});
}

TEST_F(ContinuedDownload, TriesAgainByItselfAsLongAsItGetsFurther) {
  auto cut = resource();
  cut.cut_after = kSize / 10;
  cut.cuts = 8;
  server_.serve("/file", cut);
  options_.retries = 1;
  get();
  EXPECT_EQ(read_file(target_), noise(kSize));
  EXPECT_EQ(server_.requests("/file"), 9);
  EXPECT_EQ(server_.body_bytes("/file"), kSize);
}

TEST_F(ContinuedDownload, StartsAnewWhenTheFileOnTheServerChanged) {
  get_half();
  auto changed = resource(2);
  changed.etag = "\"2\"";
  server_.serve("/file", changed);
  get();
  EXPECT_EQ(read_file(target_), noise(kSize, 2));
}

TEST_F(ContinuedDownload, KnowsAChangedFileByItsDateWhereThereIsNoETag) {
  auto dated = resource();
  dated.etag = "";
  dated.last_modified = "Mon, 01 Jan 2024 00:00:00 GMT";
  dated.cut_after = kSize / 2;
  server_.serve("/file", dated);
  EXPECT_NE(error_of([this] { get(); }), "");
  dated.body = noise(kSize, 2);
  dated.last_modified = "Tue, 02 Jan 2024 00:00:00 GMT";
  dated.cut_after = -1;
  server_.serve("/file", dated);
  get();
  EXPECT_EQ(read_file(target_), noise(kSize, 2));
}

TEST_F(ContinuedDownload, DoesNotContinueOnTheWordOfAWeakETag) {
  auto weak = resource();
  weak.etag = "W/\"1\"";
  weak.cut_after = kSize / 2;
  server_.serve("/file", weak);
  EXPECT_NE(error_of([this] { get(); }), "");
  get();
  EXPECT_EQ(server_.ranges("/file").back(), "");
  EXPECT_EQ(read_file(target_), noise(kSize));
}

TEST_F(ContinuedDownload, StartsAnewWhereTheServerIgnoresRanges) {
  get_half();
  auto whole = resource();
  whole.ranges = false;
  server_.serve("/file", whole);
  get();
  EXPECT_EQ(read_file(target_), noise(kSize));
  EXPECT_EQ(server_.ranges("/file").back(), "bytes=150000-");
}

TEST_F(ContinuedDownload, DoesNotContinueAPartOfAnotherAddress) {
  get_half();
  server_.serve("/other", resource(2));
  get("/other");
  EXPECT_EQ(server_.ranges("/other").back(), "");
  EXPECT_EQ(read_file(target_), noise(kSize, 2));
}

TEST_F(ContinuedDownload, StartsAnewWhenTheNoteBesideThePartIsDamaged) {
  get_half();
  test::write_bytes(scratch_ / "file.part.json", R"({"url": 7})");
  get();
  EXPECT_EQ(server_.ranges("/file").back(), "");
  EXPECT_EQ(read_file(target_), noise(kSize));
}

TEST_F(ContinuedDownload, TakesAPartThatIsAlreadyComplete) {
  get_half();
  test::write_bytes(part_, noise(kSize));
  get();
  EXPECT_EQ(read_file(target_), noise(kSize));
  EXPECT_EQ(server_.body_bytes("/file"), kSize / 2);
}

TEST_F(ContinuedDownload, StartsAnewWhenThePartIsLongerThanTheFile) {
  get_half();
  test::write_bytes(part_, noise(kSize + 10, 3));
  get();
  EXPECT_EQ(read_file(target_), noise(kSize));
}

TEST_F(ContinuedDownload, RefusesAnotherRangeThanItAskedFor) {
  get_half();
  auto shifted = resource();
  shifted.content_range = "bytes 100-299999/300000";
  server_.serve("/file", shifted);
  EXPECT_TRUE(contains(error_of([this] { get(); }), "another part"));
  EXPECT_EQ(scratch_.names(), Names{});
}

TEST_F(ContinuedDownload, DoesNotTakeTheETagOfARedirectForThatOfTheFile) {
  auto untagged = resource();
  untagged.etag = "";
  untagged.cut_after = kSize / 2;
  server_.serve("/file", untagged);
  HttpResource moved;
  moved.redirect = server_.url("/file");
  server_.serve("/moved", moved);
  EXPECT_NE(error_of([this] { get("/moved"); }), "");
  get("/moved");
  EXPECT_EQ(server_.ranges("/file").back(), "");
  EXPECT_EQ(read_file(target_), noise(kSize));
}

TEST_F(ContinuedDownload, StopsWhenAskedToAndContinuesLater) {
  server_.serve("/file", [this] {
    auto slow = resource();
    slow.piece = 10000;
    slow.milliseconds_per_piece = 20;
    return slow;
  }());
  std::atomic<bool> cancel{false};
  options_.cancel = &cancel;
  options_.progress = [&](int64_t bytes, int64_t) { cancel = bytes > 50000; };
  EXPECT_THROW(get(), Interrupted);
  EXPECT_FALSE(std::filesystem::exists(target_));
  EXPECT_GT(std::filesystem::file_size(part_), 50000);
  cancel = false;
  options_.progress = nullptr;
  get();
  EXPECT_NE(server_.ranges("/file").back(), "");
  EXPECT_EQ(read_file(target_), noise(kSize));
}

TEST_F(ContinuedDownload, SaysThatTheDiskIsFullAndContinuesLater) {
  server_.serve("/file", resource());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{kSize / 3, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto message = error_of([this] { get(); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(contains(message, "cannot write " + part_.string())) << message;
  EXPECT_FALSE(std::filesystem::exists(target_));
  EXPECT_EQ(std::filesystem::file_size(part_), kSize / 3);
  get();
  EXPECT_EQ(server_.ranges("/file").back(), "bytes=100000-");
  EXPECT_EQ(read_file(target_), noise(kSize));
}

}  // namespace
}  // namespace sgdph::lab::fetch::download_continue_test
