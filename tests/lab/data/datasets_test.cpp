#include "data/datasets.h"
#include "data/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "support/checks.h"
#include "support/sample_data.h"

namespace sgdph::test::datasets_test {
namespace {

using namespace sgdph::lab;
using namespace sgdph::lab::data;

std::vector<float> read_image(const Dataset& data, int64_t index, Random* random) {
  std::vector<float> out(static_cast<size_t>(data.shape().values()));
  data.read(index, random, out.data());
  return out;
}

TEST(Datasets, EveryRowIsWhole) {
  std::set<std::string> names;
  for (const auto& entry : datasets()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_GT(entry.shape.values(), 0) << entry.name;
    EXPECT_GT(entry.classes, 1) << entry.name;
    for (const auto* part : {&entry.train, &entry.test}) {
      EXPECT_GE(part->images, entry.classes) << entry.name;
      EXPECT_FALSE(part->files.empty()) << entry.name;
    }
    EXPECT_FALSE(entry.default_path.empty()) << entry.name;
    EXPECT_NE(entry.open, nullptr) << entry.name;
    EXPECT_NE(entry.origin.archive.has_value(), !entry.origin.instructions.empty()) << entry.name;
  }
  EXPECT_EQ(names, (std::set<std::string>{"cifar10", "cifar100", "fashion-mnist", "imagenet", "mini-imagenet"}));
}

TEST(Datasets, DescribeThemselvesInALine) {
  EXPECT_EQ(description(dataset("fashion-mnist")), "Fashion-MNIST: 60,000 + 10,000 grey images of 28 x 28, 10 classes");
  EXPECT_EQ(description(dataset("cifar100")), "CIFAR-100: 50,000 + 10,000 images of 32 x 32, 100 classes");
  EXPECT_EQ(description(dataset("mini-imagenet")), "Mini-ImageNet: 50,000 + 10,000 images, 100 classes, at 224 x 224");
  EXPECT_TRUE(contains(description(dataset("imagenet")), "1,281,167 + 50,000 images, 1,000 classes, at 224 x 224"));
}

TEST(Datasets, SayHowToGetThemWithTheNumbersOfTheirRow) {
  const auto fashion = instructions(dataset("fashion-mnist"));
  EXPECT_TRUE(contains(fashion, "apt-get install dataset-fashion-mnist\n")) << fashion;
  EXPECT_TRUE(contains(fashion, "found in /usr/share/datasets/fashion-mnist.")) << fashion;
  EXPECT_TRUE(contains(fashion, "train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz\n")) << fashion;
  const auto mini = instructions(dataset("mini-imagenet"));
  EXPECT_TRUE(contains(mini, "data/mini-imagenet/train.csv, val.csv, test.csv\n")) << mini;
  EXPECT_TRUE(contains(mini, "100 classes, of each the first 500 images for training, the last\n100 for")) << mini;
  const auto imagenet = instructions(dataset("imagenet"));
  EXPECT_TRUE(contains(imagenet, "data/imagenet/train/<class>/*.JPEG    1000 folders, 1,281,167 images\n")) << imagenet;
  EXPECT_TRUE(contains(imagenet, "data/imagenet/val/<class>/*.JPEG      the same folders, 50,000 images\n"))
      << imagenet;
}

TEST(Datasets, LargeImagesAndWorkersFollowFromTheRow) {
  EXPECT_TRUE(dataset("imagenet").large_images());
  EXPECT_EQ(dataset("imagenet").default_workers(), 2);
  EXPECT_FALSE(dataset("cifar10").large_images());
  EXPECT_EQ(dataset("cifar10").default_workers(), 1);
}

TEST(Datasets, PicturesAreTheFilesOfTheLists) {
  const TempFolder folder;
  const auto& entry = dataset("mini-imagenet");
  write_bytes(folder / "train.csv", "filename,label\nb.jpg,n2\n");
  write_bytes(folder / "val.csv", "filename,label\na.jpg,n1\n");
  write_bytes(folder / "test.csv", "filename,label\nc.jpg,n2\n");
  EXPECT_EQ(
      entry.pictures(entry, folder.path()),
      (std::vector<std::filesystem::path>{folder / "images/a.jpg", folder / "images/b.jpg", folder / "images/c.jpg"}));
}

TEST(Datasets, PicturesOfClassFoldersAreTheJpegFiles) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 1);
  write_bytes(folder / "val/class_000/notes.txt", "no picture");
  const auto& entry = dataset("imagenet");
  const auto pictures = entry.pictures(entry, folder.path());
  ASSERT_EQ(pictures.size(), 4U);
  EXPECT_EQ(pictures[0], folder / "train/class_000/image_0.JPEG");
}

TEST(Datasets, WithoutAugmentationTheTrainingPartIsPlain) {
  const TempFolder folder;
  write_cifar10(folder.path(), 50, 20, 1);
  const auto augmented = open_dataset("cifar10", folder.path()).train;
  const auto plain = open_dataset("cifar10", folder.path(), false).train;
  Random random(1);
  EXPECT_EQ(read_image(*plain, 7, &random), read_image(*augmented, 7, nullptr));
  EXPECT_NE(read_image(*augmented, 7, &random), read_image(*augmented, 7, nullptr));
}

/// Where in the whole training part each image of a part stands.
std::vector<size_t> places(const Dataset& part, const Dataset& all) {
  std::map<std::vector<float>, size_t> known;
  for (int64_t i = 0; i < all.size(); ++i) known.emplace(read_image(all, i, nullptr), static_cast<size_t>(i));
  EXPECT_EQ(known.size(), static_cast<size_t>(all.size())) << "images are told apart by their pixels";
  std::vector<size_t> found;
  for (int64_t i = 0; i < part.size(); ++i) found.push_back(known.at(read_image(part, i, nullptr)));
  return found;
}

TEST(Split, HoldsOutImagesThatTheTrainingPartThenLacks) {
  const TempFolder folder;
  write_cifar10(folder.path(), 50, 20, 1);
  const auto all = open_dataset("cifar10", folder.path()).train;
  const auto split = [&](uint64_t seed) {
    auto pair = open_dataset("cifar10", folder.path());
    hold_out(pair, 15, seed);
    EXPECT_EQ(pair.test->size(), 20);
    return std::pair(places(*pair.train, *all), places(*pair.validation, *all));
  };
  const auto [train, validation] = split(1);
  EXPECT_EQ(train.size(), 35U);
  EXPECT_EQ(validation.size(), 15U);
  std::set<size_t> both(train.begin(), train.end());
  both.insert(validation.begin(), validation.end());
  EXPECT_EQ(both.size(), 50U);
  EXPECT_TRUE(std::is_sorted(train.begin(), train.end()));
  EXPECT_GT(validation.back() - validation.front(), 20U) << "from all over the set";
  EXPECT_EQ(split(1).second, validation);
  EXPECT_NE(split(2).second, validation);
}

TEST(Split, IsANumberOrAFraction) {
  EXPECT_EQ(held_out_images(5000, 60000), 5000);
  EXPECT_EQ(held_out_images(0.1, 60000), 6000);
  EXPECT_EQ(held_out_images(1, 2), 1);
  for (const auto& [split, words] : std::vector<std::pair<double, std::string>>{
           {60000, "60000 leaves nothing of 60000 training images"},
           {1e30, "leaves nothing of 60000"},
           {0.999999, "leaves nothing"},
           {1e-9, "1e-09 of 60000 training images is not one image"},
           {2.5, "2.5 is no number of images"}}) {
    const auto text = error_of([split = split] { held_out_images(split, 60000); });
    EXPECT_TRUE(contains(text, "--val-split: ") && contains(text, words)) << text;
  }
}

TEST(Datasets, SuggestsTheNearestNameAndTheRemedy) {
  EXPECT_TRUE(contains(error_of([] { dataset("cifar1O"); }), "unknown data set 'cifar1O' (did you mean 'cifar10'?)"));
  EXPECT_EQ(
      error_of([] { open_dataset("cifar100", "/nowhere/c"); }),
      "cifar100: the data folder /nowhere/c does not exist; run 'sgdph data fetch cifar100 --data-path /nowhere/c'");
  EXPECT_TRUE(contains(
      error_of([] { open_test_set("imagenet", "/nowhere"); }), "does not exist; see 'sgdph data fetch imagenet'"));
}

}  // namespace
}  // namespace sgdph::test::datasets_test
