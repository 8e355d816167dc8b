#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "data/byte_images.h"
#include "data/datasets.h"
#include "support/checks.h"
#include "support/sample_data.h"

namespace sgdph::test::byte_images_test {
namespace {

using namespace sgdph::lab;
using namespace sgdph::lab::data;

constexpr int64_t kSide = 6;

ByteImages::Content content(int64_t padding) {
  ByteImages::Content content;
  content.shape = {2, kSide, kSide};
  content.classes = 3;
  content.labels = {2, 0};
  Random random(5);
  for (int64_t i = 0; i < 2 * content.shape.values(); ++i) content.pixels += static_cast<char>(random.below(256));
  content.normalisation = {{0.25F, 0.5F}, {0.5F, 0.125F}};
  content.padding = padding;
  return content;
}

/// Pads, crops and flips an image by the definition.
std::vector<float> naive(const ByteImages::Content& content, int64_t index, int64_t top, int64_t left, bool flip) {
  std::vector<float> out;
  for (int64_t c = 0; c < 2; ++c) {
    for (int64_t y = 0; y < kSide; ++y) {
      for (int64_t x = 0; x < kSide; ++x) {
        const auto row = top + y - content.padding;
        const auto column = left + (flip ? kSide - 1 - x : x) - content.padding;
        double value = 0;
        if (row >= 0 && row < kSide && column >= 0 && column < kSide) {
          const auto at = ((index * 2 + c) * kSide + row) * kSide + column;
          value = static_cast<uint8_t>(content.pixels[static_cast<size_t>(at)]) / 255.0;
        }
        const auto i = static_cast<size_t>(c);
        out.push_back(static_cast<float>((value - content.normalisation.mean[i]) / content.normalisation.deviation[i]));
      }
    }
  }
  return out;
}

bool near(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= 1e-5)) return false;  // nor is NaN near
  }
  return a.size() == b.size();
}

std::vector<float> read(const Dataset& data, int64_t index, Random* random) {
  std::vector<float> out(static_cast<size_t>(data.shape().values()), NAN);
  data.read(index, random, out.data());
  return out;
}

TEST(ByteImages, AreNormalisedForTesting) {
  const ByteImages data(content(4));
  EXPECT_EQ(data.size(), 2);
  std::vector<float> out(static_cast<size_t>(data.shape().values()));
  EXPECT_EQ(data.read(0, nullptr, out.data()), 2);
  EXPECT_EQ(data.read(1, nullptr, out.data()), 0);
  EXPECT_TRUE(near(out, naive(content(0), 1, 0, 0, false)));
}

TEST(ByteImages, AugmentToEveryCropAndFlipAndNothingElse) {
  const ByteImages data(content(4));
  std::set<std::tuple<int64_t, int64_t, bool>> seen;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const auto out = read(data, 1, &random);
    bool found = false;
    for (int64_t top = 0; top <= 8 && !found; ++top) {
      for (int64_t left = 0; left <= 8 && !found; ++left) {
        for (const bool flip : {false, true}) {
          if (found || !near(out, naive(content(4), 1, top, left, flip))) continue;
          found = true;
          seen.insert({top, left, flip});
        }
      }
    }
    ASSERT_TRUE(found) << "seed " << seed;
  }
  EXPECT_EQ(seen.size(), 9U * 9 * 2);
}

TEST(ByteImages, WithoutPaddingAugmentByAFlipOnly) {
  const ByteImages data(content(0));
  int flips = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const auto out = read(data, 0, &random);
    const bool flipped = near(out, naive(content(0), 0, 0, 0, true));
    EXPECT_TRUE(flipped || near(out, naive(content(0), 0, 0, 0, false)));
    flips += flipped ? 1 : 0;
  }
  EXPECT_GT(flips, 70);
  EXPECT_LT(flips, 130);
}

TEST(FashionMnist, IsOpenedWithItsNormalisation) {
  const TempFolder folder;
  write_fashion_mnist(folder.path(), 30, 20, 1);
  const auto [train, test, validation] = open_dataset("fashion-mnist", folder.path());
  EXPECT_EQ(train->size(), 30);
  EXPECT_EQ(test->size(), 20);
  EXPECT_EQ(test->classes(), 10);
  std::vector<float> out(28 * 28);
  EXPECT_EQ(test->read(13, nullptr, out.data()), 3);
  for (const auto value : out) {
    const double byte = (value * 0.3530 + 0.2860) * 255;
    EXPECT_NEAR(byte, std::round(byte), 1e-3);
  }
}

TEST(FashionMnist, NamesWhatIsWrong) {
  const TempFolder folder;
  const auto error = [&] { return error_of([&] { open_test_set("fashion-mnist", folder.path()); }); };
  EXPECT_TRUE(contains(error(), "t10k-images-idx3-ubyte is missing")) << error();
  write_fashion_mnist(folder.path(), 10, 10, 1);
  EXPECT_EQ(error(), "");
  write_bytes(folder / "t10k-labels-idx1-ubyte.gz", gzip(idx_bytes({3}, "abc")));
  EXPECT_TRUE(contains(error(), "t10k-labels-idx1-ubyte.gz holds 3 labels for the 10 images of")) << error();
  write_bytes(folder / "t10k-labels-idx1-ubyte.gz", gzip(idx_bytes({10}, std::string(9, '\1') + "\x0A")));
  EXPECT_TRUE(contains(error(), "t10k-labels-idx1-ubyte.gz: label 9 is 10, the classes are 0 to 9; install Debian's"));
  write_bytes(folder / "t10k-images-idx3-ubyte.gz", gzip(idx_bytes({10, 2, 2}, std::string(40, 'a'))));
  EXPECT_TRUE(contains(error(), "holds 10 x 2 x 2 values instead of images of 28 x 28")) << error();
}

TEST(Cifar, IsFoundInTheFolderOrItsParent) {
  const TempFolder folder;
  write_cifar10(folder / "cifar-10-batches-bin", 50, 20, 1);
  write_cifar100(folder / "cifar-100-binary", 200, 100, 1);
  for (const auto& path : {folder.path(), folder / "cifar-10-batches-bin"}) {
    const auto [train, test, validation] = open_dataset("cifar10", path);
    EXPECT_EQ(train->size(), 50);
    EXPECT_EQ(test->size(), 20);
    EXPECT_EQ(train->classes(), 10);
  }
  for (const auto& path : {folder.path(), folder / "cifar-100-binary"}) {
    const auto [train, test, validation] = open_dataset("cifar100", path);
    EXPECT_EQ(train->size(), 200);
    EXPECT_EQ(test->classes(), 100);
    std::vector<float> out(3072);
    EXPECT_EQ(train->read(199, nullptr, out.data()), 99);
    const double blue = (out[2048] * 0.2762 + 0.4409) * 255;
    EXPECT_NEAR(blue, std::round(blue), 1e-3);
  }
}

TEST(Cifar, NamesTheFileAndTheRemedy) {
  const TempFolder folder;
  write_cifar10(folder.path(), 50, 20, 1);
  std::filesystem::resize_file(folder / "data_batch_3.bin", 3073 * 10 - 1);
  const auto text = error_of([&] { open_dataset("cifar10", folder.path()); });
  EXPECT_TRUE(contains(text, "data_batch_3.bin: its 30729 bytes are no multiple")) << text;
  EXPECT_TRUE(contains(text, "; run 'sgdph data fetch cifar10 --data-path " + folder.path().string() + "'")) << text;
  EXPECT_TRUE(contains(error_of([&] { open_dataset("cifar100", folder.path()); }), "train.bin is missing; run 'sgdph"));
}

}  // namespace
}  // namespace sgdph::test::byte_images_test
