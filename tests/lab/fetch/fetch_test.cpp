#include "fetch/fetch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/lock.h"
#include "data/datasets.h"
#include "fetch/manifest.h"
#include "fetch/verify.h"
#include "lab/fetch/served.h"
#include "support/paths.h"

namespace sgdph::lab::fetch::fetch_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::contains;
using test::error_of;
using test::kUnknown;
using Names = std::vector<std::string>;
using FetchCifar100 = test::ServedCifar100;

const Names kFolder{
    "cifar-100-binary", "cifar-100-binary/fine_label_names.txt", "cifar-100-binary/sgdph-manifest.json",
    "cifar-100-binary/test.bin", "cifar-100-binary/train.bin"};

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
  test::write_bytes(root_ / "cifar-100-binary.tar.gz", "damaged");
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

TEST_F(FetchCifar100, KeepsAnArchiveThatHasTheChecksumAskedForWhateverIsWrongWithIt) {
  resource_.body.resize(resource_.body.size() / 2);
  server_.serve("/cifar-100-binary.tar.gz", resource_);
  test::write_bytes(source_ / "half", resource_.body);
  options_.checksum = file_checksum(source_ / "half", DigestKind::Sha256).text();
  EXPECT_TRUE(contains(error_of([this] { get(); }), "damaged"));
  EXPECT_EQ(root_.names(), Names{"cifar-100-binary.tar.gz"});
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
  test::write_bytes(folder_ / "train.bin", "damaged");
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
  test::write_bytes(folder_ / "notes.txt", "mine");
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
  const test::TempFolder scratch;
  options.root = scratch / "set";
  test::write_image_folder(options.root, 2, 1);
  EXPECT_EQ(fetch("imagenet", options).outcome, FetchOutcome::AlreadyThere);
  fs::remove_all(options.root / "val");
  EXPECT_EQ(fetch("imagenet", options).outcome, FetchOutcome::Instructions);
  options.url = "https://host/x.tar";
  EXPECT_TRUE(contains(error_of([&] { fetch("imagenet", options); }), "not downloaded by us"));
  EXPECT_TRUE(contains(error_of([&] { fetch("cifar1000", options); }), "did you mean 'cifar100'?"));
  EXPECT_TRUE(contains(data::instructions(data::dataset("fashion-mnist")), "apt-get install dataset-fashion-mnist"));
}

TEST(Fetch, TakesTheWholeOfCifar100FromALocalCopy) {
  const char* given = std::getenv("SGDPH_SHARED_DATA");
  const auto archive = fs::path(given != nullptr ? given : test::kSharedDataDir) / "cifar-100-binary.tar.xz";
  if (!fs::exists(archive)) GTEST_SKIP() << archive << " is not there (its folder can be given by SGDPH_SHARED_DATA)";
  const test::TempFolder scratch;
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
}  // namespace sgdph::lab::fetch::fetch_test
