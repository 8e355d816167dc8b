#include "fetch/fetch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "fetch/lock.h"
#include "fetch/manifest.h"
#include "fetch/progress.h"
#include "fetch/sources.h"
#include "fetch/verify.h"
#include "lab/fetch/scratch.h"
#include "support/http_server.h"
#include "support/sample_data.h"

namespace sgdph::lab {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::contains;
using test::error_of;
using Names = std::vector<std::string>;

const Names kFolder{
    "cifar-100-binary", "cifar-100-binary/fine_label_names.txt", "cifar-100-binary/sgdph-manifest.json",
    "cifar-100-binary/test.bin", "cifar-100-binary/train.bin"};
constexpr const char* kUnknown = "checksums unknown (not the official order or an own copy)";

/// A server with a small CIFAR-100, and an empty folder to fetch it to.
class FetchCifar100 : public ::testing::Test {
 protected:
  FetchCifar100() {
    test::write_cifar100(source_ / "set", 200, 100, 1);
    train_ = read_file(source_ / "set" / "train.bin");
    test_ = read_file(source_ / "set" / "test.bin");
    options_.root = root_.path();
    options_.url = server_.url("/cifar-100-binary.tar.gz");
    options_.checksum = "any";
    options_.download.retries = 0;
    options_.say = [this](const std::string& line) { said_ += line + "\n"; };
    serve(train_, test_);
  }

  void serve(const std::string& train, const std::string& test_part) {
    test::make_archive(
        source_ / "a.tar.gz", {{"cifar-100-binary/train.bin", train},
                               {"cifar-100-binary/test.bin", test_part},
                               {"cifar-100-binary/fine_label_names.txt", "apple\n"},
                               {"cifar-100-binary/file.txt~", "not expected"}});
    resource_.body = read_file(source_ / "a.tar.gz");
    server_.serve("/cifar-100-binary.tar.gz", resource_);
  }
  FetchOutcome get() { return fetch("cifar100", options_).outcome; }

  test::Scratch source_;
  test::Scratch root_;
  test::HttpServer server_;
  test::HttpResource resource_;
  std::string train_;
  std::string test_;
  FetchOptions options_;
  std::string said_;
  fs::path folder_ = root_ / "cifar-100-binary";
};

TEST_F(FetchCifar100, PutsAVerifiedSetInPlaceAndNothingElse) {
  EXPECT_EQ(get(), FetchOutcome::Fetched);
  EXPECT_EQ(root_.names(), kFolder);
  EXPECT_EQ(read_file(folder_ / "train.bin"), train_);
  const auto report = verify("cifar100", root_.path());
  EXPECT_EQ(report.train, 200);
  EXPECT_EQ(report.test, 100);
  EXPECT_EQ(report.classes, 100);
  EXPECT_EQ(report.provenance, Provenance::Recorded);
  EXPECT_TRUE(contains(report.verdict(), kUnknown)) << report.verdict();
  EXPECT_TRUE(contains(report.lines().at(1), "published: 50000 and 10000")) << report.lines().at(1);

  const auto manifest = Manifest::read(folder_);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->source, options_.url);
  EXPECT_FALSE(manifest->official);
  EXPECT_EQ(manifest->files.at("train.bin").sha256, file_digest(source_ / "set" / "train.bin", DigestKind::Sha256));
  EXPECT_EQ(manifest->files.size(), 3U);
}

TEST_F(FetchCifar100, DoesNothingWhenItIsThereAndWellFormed) {
  get();
  const auto requests = server_.requests("/cifar-100-binary.tar.gz");
  said_.clear();
  EXPECT_EQ(get(), FetchOutcome::AlreadyThere);
  EXPECT_EQ(server_.requests("/cifar-100-binary.tar.gz"), requests);
  EXPECT_TRUE(contains(said_, "already in " + folder_.string())) << said_;
}

TEST_F(FetchCifar100, MeansTheSameFolderWhetherItsOwnOrTheOneAroundItIsNamed) {
  options_.root = folder_;
  EXPECT_EQ(get(), FetchOutcome::Fetched);
  EXPECT_EQ(root_.names(), kFolder);
}

TEST_F(FetchCifar100, KeepsTheArchiveIfAskedToAndUsesItTheNextTime) {
  options_.keep_archive = true;
  get();
  EXPECT_EQ(read_file(root_ / "cifar-100-binary.tar.gz"), resource_.body);
  fs::remove_all(folder_);
  options_.keep_archive = false;
  EXPECT_EQ(get(), FetchOutcome::Fetched);
  EXPECT_EQ(server_.requests("/cifar-100-binary.tar.gz"), 1);
  EXPECT_TRUE(fs::exists(root_ / "cifar-100-binary.tar.gz"));  // not brought by this call: not for it to remove
}

TEST_F(FetchCifar100, DownloadsAgainWhenTheArchiveThatIsThereHasAnotherChecksum) {
  options_.checksum = file_checksum(source_ / "a.tar.gz", DigestKind::Sha256).text();
  test::write(root_ / "cifar-100-binary.tar.gz", "damaged");
  EXPECT_EQ(get(), FetchOutcome::Fetched);
  EXPECT_EQ(root_.names(), kFolder);
}

TEST_F(FetchCifar100, InsistsOnTheOfficialChecksumUnlessToldOtherwise) {
  options_.checksum = "";
  const auto message = error_of([this] { get(); });
  EXPECT_TRUE(contains(message, "md5:03b5dce01913d631647c71ecec9e9cb8")) << message;
  EXPECT_EQ(root_.names(), Names{});
}

TEST_F(FetchCifar100, LeavesNothingOfAnArchiveThatCannotBeUnpacked) {
  resource_.body.resize(resource_.body.size() / 2);
  server_.serve("/cifar-100-binary.tar.gz", resource_);
  EXPECT_TRUE(contains(error_of([this] { get(); }), "damaged"));
  EXPECT_EQ(root_.names(), Names{});
}

TEST_F(FetchCifar100, LeavesNothingOfASetThatIsNotWellFormed) {
  auto wrong_label = train_;
  wrong_label[3074 + 1] = 100;
  serve(wrong_label, test_);
  const auto message = error_of([this] { get(); });
  EXPECT_TRUE(contains(message, "train.bin: record 1 has the fine label 100")) << message;
  EXPECT_FALSE(contains(message, "sgdph data fetch")) << message;
  EXPECT_EQ(root_.names(), Names{});

  serve(train_, test_.substr(1));
  EXPECT_TRUE(contains(error_of([this] { get(); }), "test.bin"));
  EXPECT_EQ(root_.names(), Names{});
}

TEST_F(FetchCifar100, LeavesAnOldFolderAloneWhenItFailsAndReplacesItWhenItSucceeds) {
  get();
  test::write(folder_ / "train.bin", "damaged");
  auto missing = resource_;
  missing.statuses = {404};
  server_.serve("/cifar-100-binary.tar.gz", missing);
  EXPECT_NE(error_of([this] { get(); }), "");
  EXPECT_EQ(read_file(folder_ / "train.bin"), "damaged");
  EXPECT_EQ(root_.names(), kFolder);

  EXPECT_EQ(get(), FetchOutcome::Fetched);
  EXPECT_EQ(read_file(folder_ / "train.bin"), train_);
  EXPECT_EQ(root_.names(), kFolder);
}

TEST_F(FetchCifar100, KeepsFilesOfTheUserWhenItReplacesAFolder) {
  fs::create_directory(folder_);
  test::write(folder_ / "notes.txt", "mine");
  EXPECT_EQ(get(), FetchOutcome::Fetched);
  EXPECT_EQ(read_file(root_ / "cifar-100-binary.old/notes.txt"), "mine");
  EXPECT_TRUE(contains(said_, "cifar-100-binary.old")) << said_;
}

TEST_F(FetchCifar100, RefusesToRunBesideAnotherOfTheSameSet) {
  const FileLock lock(root_ / ".cifar-100-binary.lock", "testing");
  EXPECT_TRUE(contains(error_of([this] { get(); }), "another process is fetching cifar100"));
}

TEST_F(FetchCifar100, SucceedsAfterAProcessWasKilledInTheMiddle) {
  auto slow = resource_;
  slow.piece = 4096;
  slow.milliseconds_per_piece = 10;
  server_.serve("/cifar-100-binary.tar.gz", slow);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      get();
    } catch (...) {
    }
    ::_exit(0);
  }
  const auto part = root_ / "cifar-100-binary.tar.gz.part";
  std::error_code missing;
  for (int i = 0; i < 1000 && (!fs::exists(part) || fs::file_size(part, missing) < 20000); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_FALSE(fs::exists(folder_));
  ASSERT_GE(fs::file_size(part), 20000U);

  server_.serve("/cifar-100-binary.tar.gz", resource_);
  EXPECT_EQ(get(), FetchOutcome::Fetched);
  EXPECT_EQ(root_.names(), kFolder);
  EXPECT_EQ(read_file(folder_ / "train.bin"), train_);
  EXPECT_TRUE(contains(server_.ranges("/cifar-100-binary.tar.gz").back(), "bytes="));
}

TEST_F(FetchCifar100, IsSilentIfAskedTo) {
  options_.quiet = true;
  options_.download.progress = [this](int64_t, int64_t) { said_ += "progress"; };
  get();
  EXPECT_EQ(said_, "");
}

TEST_F(FetchCifar100, RefusesAnAddressThatNamesNoArchive) {
  for (const auto* url : {"here", "https://host", "https://host/", "https://host/folder/", "https://host/.."}) {
    options_.url = url;
    EXPECT_TRUE(contains(error_of([this] { get(); }), "does not name an archive")) << url;
  }
  EXPECT_EQ(root_.names(), Names{});
}

TEST_F(FetchCifar100, NamesAFileThatChangedSinceItWasFetched) {
  get();
  auto flipped = train_;
  flipped[5000] = static_cast<char>(flipped[5000] ^ 1);
  test::write(folder_ / "train.bin", flipped);
  EXPECT_TRUE(
      contains(error_of([this] { verify("cifar100", folder_); }), (folder_ / "train.bin").string() + " is damaged"));
  test::write(folder_ / "train.bin", train_ + "x");
  EXPECT_TRUE(contains(error_of([this] { verify("cifar100", folder_); }), "train.bin is damaged: it has 614801 bytes"));
  fs::remove(folder_ / "train.bin");
  EXPECT_TRUE(contains(error_of([this] { verify("cifar100", folder_); }), "train.bin is missing"));
}

TEST_F(FetchCifar100, MatchesThePublishedFilesWhenTheManifestSaysTheArchiveDid) {
  get();
  auto manifest = *Manifest::read(folder_);
  manifest.official = true;
  manifest.write(folder_);
  EXPECT_EQ(verify("cifar100", folder_).verdict(), "matches the published files");
}

TEST_F(FetchCifar100, RefusesAManifestItDoesNotUnderstand) {
  get();
  const auto path = folder_ / Manifest::kFile;
  auto other = *Manifest::read(folder_);
  for (const auto* text : {"", "[]", "{", R"({"format": 2})", R"({"format": 1, "dataset": 3})"}) {
    test::write(path, text);
    EXPECT_TRUE(contains(error_of([this] { verify("cifar100", folder_); }), Manifest::kFile)) << text;
  }
  other.dataset = "cifar10";
  other.write(folder_);
  EXPECT_TRUE(contains(error_of([this] { verify("cifar100", folder_); }), "not of cifar100"));
  other.dataset = "cifar100";
  other.files = {{"../x", {}}};
  other.write(folder_);
  EXPECT_TRUE(contains(error_of([this] { verify("cifar100", folder_); }), "'../x'"));
  other.files.clear();
  other.write(folder_);
  EXPECT_TRUE(contains(error_of([this] { verify("cifar100", folder_); }), "does not list train.bin"));
}

TEST(Verify, AcceptsAWellFormedCopyOfUnknownOrigin) {
  const test::Scratch scratch;
  test::write_cifar10(scratch / "set", 10, 5, 1);
  VerifyOptions decode;
  decode.decode = true;
  const auto report = verify("cifar10", scratch / "set", decode);
  EXPECT_EQ(report.verdict(), std::string("well formed; ") + kUnknown);
  EXPECT_EQ(report.decoded, 15);
  test::write(scratch / "set" / "data_batch_3.bin", "short");
  EXPECT_TRUE(contains(error_of([&] { verify("cifar10", scratch / "set"); }), "data_batch_3.bin"));
}

TEST(Verify, ReadsEveryHeaderOfClassFoldersAndNamesADamagedPicture) {
  const test::Scratch scratch;
  test::write_image_folder(scratch / "set", 3, 2);
  const auto report = verify("imagenet", scratch / "set");
  EXPECT_EQ(report.classes, 3);
  EXPECT_EQ(report.train, 6);
  EXPECT_EQ(report.headers, 12);
  EXPECT_EQ(report.provenance, Provenance::Unknown);

  std::vector<fs::path> pictures;
  for (const auto& entry : fs::recursive_directory_iterator(scratch / "set/val")) {
    if (entry.is_regular_file()) pictures.push_back(entry.path());
  }
  const auto bytes = read_file(pictures.back());
  test::write(pictures.back(), bytes.substr(0, bytes.size() / 2));
  EXPECT_EQ(verify("imagenet", scratch / "set").headers, 12);  // the header is whole
  VerifyOptions decode;
  decode.decode = true;
  EXPECT_TRUE(contains(error_of([&] { verify("imagenet", scratch / "set", decode); }), pictures.back().string()));
  test::write(pictures.back(), "no picture");
  EXPECT_TRUE(contains(error_of([&] { verify("imagenet", scratch / "set"); }), pictures.back().string()));
}

TEST(Verify, KnowsThePublishedFashionMnist) {
  const fs::path folder = "/usr/share/datasets/fashion-mnist";
  if (!fs::exists(folder)) GTEST_SKIP() << "Debian's dataset-fashion-mnist is not installed";
  EXPECT_EQ(verify("fashion-mnist", "").verdict(), "matches the published files");
  const test::Scratch scratch;
  test::write_fashion_mnist(scratch / "own", 20, 10, 1);
  EXPECT_EQ(verify("fashion-mnist", scratch / "own").provenance, Provenance::Unknown);
}

TEST(Verify, StopsWhenAskedTo) {
  const test::Scratch scratch;
  test::write_cifar10(scratch / "set", 10, 5, 1);
  const std::atomic<bool> cancel{true};
  VerifyOptions options;
  options.cancel = &cancel;
  EXPECT_THROW(verify("cifar10", scratch / "set", options), Interrupted);
}

TEST(Fetch, SaysHowToGetWhatNeedsARegistration) {
  std::string said;
  FetchOptions options;
  options.quiet = true;
  options.say = [&](const std::string& line) { said = line; };
  for (const auto* name : {"imagenet", "mini-imagenet"}) {
    EXPECT_EQ(fetch(name, options).outcome, FetchOutcome::Instructions);
    EXPECT_TRUE(contains(said, "https://image-net.org")) << said;
    EXPECT_TRUE(contains(said, std::string("data/") + name)) << said;
  }
  const test::Scratch scratch;
  options.root = scratch / "set";
  test::write_image_folder(options.root, 2, 1);
  EXPECT_EQ(fetch("imagenet", options).outcome, FetchOutcome::AlreadyThere);
  fs::remove_all(options.root / "val");
  EXPECT_EQ(fetch("imagenet", options).outcome, FetchOutcome::Instructions);
  options.url = "https://host/x.tar";
  EXPECT_TRUE(contains(error_of([&] { fetch("imagenet", options); }), "not downloaded by us"));
  EXPECT_TRUE(contains(error_of([&] { fetch("cifar1000", options); }), "did you mean 'cifar100'?"));
  EXPECT_TRUE(contains(source_of("fashion-mnist").instructions, "apt-get install dataset-fashion-mnist"));
}

TEST(ALock, EndsWithItsHolder) {
  const test::Scratch scratch;
  { const FileLock lock(scratch / "lock", "testing"); }
  EXPECT_EQ(scratch.names(), Names{});
  const FileLock again(scratch / "lock", "testing");
  EXPECT_TRUE(contains(error_of([&] { FileLock(scratch / "lock", "testing"); }), "another process is testing"));
  EXPECT_EQ(scratch.names(), Names{"lock"});
}

TEST(Progress, GivesPercentageSpeedAndTimeLeft) {
  EXPECT_EQ(download_progress(50000000, 100000000, 0, 10), " 50 %  50.0 of 100.0 MB  5.0 MB/s  ETA 0:10");
  EXPECT_EQ(download_progress(50000000, 100000000, 40000000, 10), " 50 %  50.0 of 100.0 MB  1.0 MB/s  ETA 0:50");
  EXPECT_EQ(download_progress(1000000, 4000000000, 0, 1), "  0 %  1.0 of 4000.0 MB  1.0 MB/s  ETA 1:06:39");
  EXPECT_EQ(download_progress(5000000, 0, 0, 2), "5.0 MB  2.5 MB/s");
  EXPECT_EQ(download_progress(0, 100, 0, 0), "  0 %  0.0 of 0.0 MB");
}

TEST(Fetch, TakesTheWholeOfCifar100FromALocalCopy) {
  const char* given = std::getenv("SGDPH_SHARED_DATA");
  const auto archive = fs::path(given != nullptr ? given : SGDPH_SHARED_DATA_DIR) / "cifar-100-binary.tar.xz";
  if (!fs::exists(archive)) GTEST_SKIP() << archive << " is not there (its folder can be given by SGDPH_SHARED_DATA)";
  const test::Scratch scratch;
  FetchOptions options;
  options.root = scratch.path();
  options.url = "file://" + fs::canonical(archive).string();
  options.checksum = "any";
  EXPECT_EQ(fetch("cifar100", options).outcome, FetchOutcome::Fetched);
  const auto report = verify("cifar100", scratch.path());
  EXPECT_EQ(report.train, 50000);
  EXPECT_EQ(report.test, 10000);
  EXPECT_TRUE(contains(report.verdict(), kUnknown)) << report.verdict();
  EXPECT_TRUE(fs::exists(archive));
}

}  // namespace
}  // namespace sgdph::lab
