#include "fetch/verify.h"

#include <gtest/gtest.h>

#include <atomic>

#include "fetch/manifest.h"
#include "lab/fetch/served.h"

namespace sgdph::lab::fetch::verify_test {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::error_of;
using test::kUnknown;
using VerifyCifar100 = test::ServedCifar100;

TEST_F(VerifyCifar100, NamesAFileThatChangedSinceItWasFetched) {
  get();
  auto flipped = train_;
  flipped[5000] = static_cast<char>(flipped[5000] ^ 1);
  test::write_bytes(folder_ / "train.bin", flipped);
  EXPECT_TRUE(
      contains(error_of([this] { verify("cifar100", folder_); }), (folder_ / "train.bin").string() + " is damaged"));
  test::write_bytes(folder_ / "train.bin", train_ + "x");
  EXPECT_TRUE(contains(error_of([this] { verify("cifar100", folder_); }), "train.bin is damaged: it has 614801 bytes"));
  fs::remove(folder_ / "train.bin");
  EXPECT_TRUE(contains(error_of([this] { verify("cifar100", folder_); }), "train.bin is missing"));
}

TEST_F(VerifyCifar100, MatchesThePublishedFilesWhenTheManifestSaysTheArchiveDid) {
  get();
  auto manifest = *Manifest::read(folder_);
  manifest.official = true;
  manifest.write(folder_);
  EXPECT_EQ(verify("cifar100", folder_).verdict(), "matches the published files");
}

TEST_F(VerifyCifar100, RefusesAManifestItDoesNotUnderstand) {
  get();
  const auto path = folder_ / Manifest::kFile;
  auto other = *Manifest::read(folder_);
  for (const auto* text : {"", "[]", "{", R"({"format": 2})", R"({"format": 1, "dataset": 3})"}) {
    test::write_bytes(path, text);
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
  const test::TempFolder scratch;
  test::write_cifar10(scratch / "set", 10, 5, 1);
  VerifyOptions decode;
  decode.decode = true;
  const auto report = verify("cifar10", scratch / "set", decode);
  EXPECT_EQ(report.verdict(), std::string("well formed; ") + kUnknown);
  EXPECT_EQ(report.decoded, 15);
  test::write_bytes(scratch / "set" / "data_batch_3.bin", "short");
  EXPECT_TRUE(contains(error_of([&] { verify("cifar10", scratch / "set"); }), "data_batch_3.bin"));
}

TEST(Verify, ReadsEveryHeaderOfClassFoldersAndNamesADamagedPicture) {
  const test::TempFolder scratch;
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
  test::write_bytes(pictures.back(), bytes.substr(0, bytes.size() / 2));
  EXPECT_EQ(verify("imagenet", scratch / "set").headers, 12);  // the header is whole
  VerifyOptions decode;
  decode.decode = true;
  EXPECT_TRUE(contains(error_of([&] { verify("imagenet", scratch / "set", decode); }), pictures.back().string()));
  test::write_bytes(pictures.back(), "no picture");
  EXPECT_TRUE(contains(error_of([&] { verify("imagenet", scratch / "set"); }), pictures.back().string()));
}

TEST(Verify, KnowsThePublishedFashionMnist) {
  const fs::path folder = "/usr/share/datasets/fashion-mnist";
  if (!fs::exists(folder)) GTEST_SKIP() << "Debian's dataset-fashion-mnist is not installed";
  EXPECT_EQ(verify("fashion-mnist", "").verdict(), "matches the published files");
  const test::TempFolder scratch;
  test::write_fashion_mnist(scratch / "own", 20, 10, 1);
  EXPECT_EQ(verify("fashion-mnist", scratch / "own").provenance, Provenance::Unknown);
}

TEST(Verify, StopsWhenAskedTo) {
  const test::TempFolder scratch;
  test::write_cifar10(scratch / "set", 10, 5, 1);
  const std::atomic<bool> cancel{true};
  VerifyOptions options;
  options.cancel = &cancel;
  EXPECT_THROW(verify("cifar10", scratch / "set", options), Interrupted);
}

}  // namespace
}  // namespace sgdph::lab::fetch::verify_test
