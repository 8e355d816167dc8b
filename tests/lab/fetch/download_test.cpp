#include "fetch/download.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>

#include "lab/fetch/scratch.h"
#include "support/http_server.h"

namespace sgdph::lab {
namespace {

using namespace std::chrono_literals;
using test::contains;
using test::error_of;
using test::HttpResource;
using test::noise;
using Names = std::vector<std::string>;

constexpr int64_t kSize = 300000;

class Download : public ::testing::Test {
 protected:
  Download() {
    options_.retries = 0;
    options_.backoff = 1ms;
  }

  HttpResource resource(uint64_t seed = 1) const {
    HttpResource resource;
    resource.body = noise(kSize, seed);
    return resource;
  }
  void get(const std::string& path = "/file", const std::optional<Checksum>& checksum = {}) {
    download(server_.url(path), target_, checksum, options_);
  }
  /// Half of the file, as left by a connection that was cut.
  void get_half() {
    auto cut = resource();
    cut.cut_after = kSize / 2;
    server_.serve("/file", cut);
    ASSERT_NE(error_of([this] { get(); }), "");
    ASSERT_EQ(std::filesystem::file_size(part_), kSize / 2);
  }

  test::Scratch scratch_;
  test::HttpServer server_;
  std::filesystem::path target_ = scratch_ / "file";
  std::filesystem::path part_ = scratch_ / "file.part";
  DownloadOptions options_;
};

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

TEST_F(Download, ContinuesAfterACutWithoutSendingBytesAgain) {
  get_half();
  EXPECT_EQ(scratch_.names(), (Names{"file.part", "file.part.json"}));
  get();
  EXPECT_EQ(read_file(target_), noise(kSize));
  EXPECT_EQ(server_.body_bytes("/file"), kSize);
  EXPECT_EQ(server_.ranges("/file").back(), "bytes=150000-");
  EXPECT_EQ(scratch_.names(), Names{"file"});
}

TEST_F(Download, TriesAgainByItselfAsLongAsItGetsFurther) {
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

TEST_F(Download, StartsAnewWhenTheFileOnTheServerChanged) {
  get_half();
  auto changed = resource(2);
  changed.etag = "\"2\"";
  server_.serve("/file", changed);
  get();
  EXPECT_EQ(read_file(target_), noise(kSize, 2));
}

TEST_F(Download, KnowsAChangedFileByItsDateWhereThereIsNoETag) {
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

TEST_F(Download, DoesNotContinueOnTheWordOfAWeakETag) {
  auto weak = resource();
  weak.etag = "W/\"1\"";
  weak.cut_after = kSize / 2;
  server_.serve("/file", weak);
  EXPECT_NE(error_of([this] { get(); }), "");
  get();
  EXPECT_EQ(server_.ranges("/file").back(), "");
  EXPECT_EQ(read_file(target_), noise(kSize));
}

TEST_F(Download, StartsAnewWhereTheServerIgnoresRanges) {
  get_half();
  auto whole = resource();
  whole.ranges = false;
  server_.serve("/file", whole);
  get();
  EXPECT_EQ(read_file(target_), noise(kSize));
  EXPECT_EQ(server_.ranges("/file").back(), "bytes=150000-");
}

TEST_F(Download, DoesNotContinueAPartOfAnotherAddress) {
  get_half();
  server_.serve("/other", resource(2));
  get("/other");
  EXPECT_EQ(server_.ranges("/other").back(), "");
  EXPECT_EQ(read_file(target_), noise(kSize, 2));
}

TEST_F(Download, StartsAnewWhenTheNoteBesideThePartIsDamaged) {
  get_half();
  test::write(scratch_ / "file.part.json", R"({"url": 7})");
  get();
  EXPECT_EQ(server_.ranges("/file").back(), "");
  EXPECT_EQ(read_file(target_), noise(kSize));
}

TEST_F(Download, TakesAPartThatIsAlreadyComplete) {
  get_half();
  test::write(part_, noise(kSize));
  get();
  EXPECT_EQ(read_file(target_), noise(kSize));
  EXPECT_EQ(server_.body_bytes("/file"), kSize / 2);
}

TEST_F(Download, StartsAnewWhenThePartIsLongerThanTheFile) {
  get_half();
  test::write(part_, noise(kSize + 10, 3));
  get();
  EXPECT_EQ(read_file(target_), noise(kSize));
}

TEST_F(Download, RefusesAnotherRangeThanItAskedFor) {
  get_half();
  auto shifted = resource();
  shifted.content_range = "bytes 100-299999/300000";
  server_.serve("/file", shifted);
  EXPECT_TRUE(contains(error_of([this] { get(); }), "another part"));
  EXPECT_EQ(scratch_.names(), Names{});
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
  test::write(scratch_ / "model", noise(kSize));
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
  test::write(scratch_ / "model", noise(kSize));
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

TEST_F(Download, DoesNotTakeTheETagOfARedirectForThatOfTheFile) {
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

TEST_F(Download, RefusesARedirectToALocalFile) {
  test::write(scratch_ / "secret", "secret");
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
  test::write(scratch_ / "source", noise(kSize));
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

TEST_F(Download, StopsWhenAskedToAndContinuesLater) {
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

TEST_F(Download, SaysThatTheDiskIsFullAndContinuesLater) {
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

TEST(ADigest, IsThatOfTheStandards) {
  const auto hex = [](DigestKind kind, std::initializer_list<std::string_view> pieces) {
    Digest digest(kind);
    for (const auto piece : pieces) digest.update(piece);
    return digest.finish();
  };
  EXPECT_EQ(hex(DigestKind::Md5, {}), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(hex(DigestKind::Md5, {"a", "bc"}), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(hex(DigestKind::Sha256, {"abc"}), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(AChecksum, IsReadInAnyCaseAndRefusedInAnyOtherForm) {
  EXPECT_EQ(Checksum::parse("md5:900150983CD24FB0D6963F7D28E17F72").text(), "md5:900150983cd24fb0d6963f7d28e17f72");
  for (const auto* wrong :
       {"", "any", "md5", "md5:", "md5:12", "sha1:900150983cd24fb0d6963f7d28e17f72",
        "sha256:900150983cd24fb0d6963f7d28e17f72", "md5:g00150983cd24fb0d6963f7d28e17f72"}) {
    EXPECT_TRUE(contains(error_of([&] { Checksum::parse(wrong); }), fmt::format("'{}'", wrong))) << wrong;
  }
}

TEST(ADigest, NamesAFileThatCannotBeRead) {
  EXPECT_TRUE(contains(error_of([] { file_digest("/nowhere/x", DigestKind::Md5); }), "/nowhere/x"));
  EXPECT_NE(error_of([] { file_digest("/", DigestKind::Md5); }), "");
}

}  // namespace
}  // namespace sgdph::lab
