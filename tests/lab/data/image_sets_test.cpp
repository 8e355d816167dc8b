#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "base/files.h"
#include "data/datasets.h"
#include "data/jpeg.h"
#include "data/openers.h"
#include "support/checks.h"
#include "support/paths.h"
#include "support/sample_data.h"

namespace sgdph::test::image_sets_test {
namespace {

using namespace sgdph::lab;
using namespace sgdph::lab::data;
namespace fs = std::filesystem;

constexpr size_t kValues = size_t{3} * 224 * 224;

/// Samples of the real data sets, or an empty path.
fs::path shared_data(const std::string& name) {
  const char* given = std::getenv("SGDPH_SHARED_DATA");
  const auto path = fs::path(given != nullptr ? given : kSharedDataDir) / name;
  return fs::exists(path) ? path : fs::path();
}

std::vector<float> read(const Dataset& data, int64_t index, Random* random) {
  std::vector<float> out(kValues, NAN);
  data.read(index, random, out.data());
  for (const auto value : out) {
    // Black and white, normalised: -2.12 and 2.64.
    if (!(value > -2.2 && value < 2.7)) ADD_FAILURE() << value;
  }
  return out;
}

TEST(ImageFolder, NumbersClassesAndImagesByName) {
  const TempFolder folder;
  write_image_folder(folder.path(), 3, 2);
  write_bytes(folder / "train/class_001/zebra.jpg", sample_jpeg(60, 40, 1, 1));
  write_bytes(folder / "train/class_001/notes.txt", "not an image");
  write_bytes(folder / "train/class_002/a.JpG", sample_jpeg(60, 40, 1, 1));
  const auto [train, test, validation] = open_dataset("imagenet", folder.path());
  EXPECT_EQ(train->size(), 8);
  EXPECT_EQ(test->size(), 6);
  EXPECT_EQ(train->classes(), 3);
  EXPECT_EQ(train->shape().values(), static_cast<int64_t>(kValues));
  std::vector<float> out(kValues);
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 8; ++i) labels.push_back(train->read(i, nullptr, out.data()));
  EXPECT_EQ(labels, (std::vector<int64_t>{0, 0, 1, 1, 1, 2, 2, 2}));
}

TEST(ImageFolder, TestsTheCentreAndTrainsOnRandomCrops) {
  const TempFolder folder;
  write_image_folder(folder.path(), 1, 1);
  // 512 x 512: a white square in the middle, 448 wide, is all that the centre crop shows.
  std::string pixels;
  for (int y = 0; y < 512; ++y) {
    for (int x = 0; x < 512; ++x) pixels.append(3, x >= 32 && x < 480 && y >= 32 && y < 480 ? '\xff' : '\0');
  }
  write_bytes(folder / "val/class_000/image_0.JPEG", encode_jpeg(pixels, 512, 512, 3, 100));
  const auto test = open_test_set("imagenet", folder.path());
  const auto centre = read(*test, 0, nullptr);
  const double white = (1 - 0.485) / 0.229;
  EXPECT_NEAR(centre[0 + 224 * 112], white, 0.6);  // half of a black neighbour at most
  for (size_t y = 2; y < 222; ++y) ASSERT_NEAR(centre[y * 224 + 2], white, 0.05);
  Random one(1);
  Random again(1);
  Random other(2);
  const auto crop = read(*test, 0, &one);
  EXPECT_EQ(crop, read(*test, 0, &again));
  EXPECT_NE(crop, read(*test, 0, &other));
  EXPECT_NE(crop, centre);
}

TEST(ImageFolder, NamesWhatIsWrong) {
  const TempFolder folder;
  const auto error = [&] { return error_of([&] { open_dataset("imagenet", folder.path()); }); };
  EXPECT_TRUE(contains(error(), "/train is missing; see 'sgdph data fetch imagenet'")) << error();
  fs::create_directories(folder / "train");
  EXPECT_TRUE(contains(error(), "/train has no class folders; put a folder for each class there")) << error();
  write_image_folder(folder.path(), 3, 1);
  EXPECT_EQ(error(), "");
  fs::remove(folder / "train/class_001/image_0.JPEG");
  EXPECT_TRUE(contains(error(), "/train/class_001 holds no JPEG files; fill it or remove it")) << error();
  fs::remove(folder / "train/class_001");
  EXPECT_TRUE(contains(error(), "has 2 class folders and")) << error();
  EXPECT_TRUE(contains(error(), "'class_001' is in val only; give both the same classes")) << error();
  fs::remove_all(folder / "val");
  EXPECT_TRUE(contains(error(), "/val is missing")) << error();
}

TEST(ImageFolder, TestsWithoutATrainingPart) {
  const TempFolder folder;
  write_image_folder(folder.path(), 2, 1);
  fs::remove_all(folder / "train");
  EXPECT_EQ(open_test_set("imagenet", folder.path())->size(), 2);
}

/// Lists of 100 classes, spread over the three files as the published ones are; class i is named by a descending
/// number, so that the order of the lists is not that of the labels.
void write_lists(const fs::path& folder, int per_class) {
  fs::create_directories(folder / "images");
  int label = 100;
  for (const auto& [name, classes] : {std::pair{"train.csv", 64}, {"val.csv", 16}, {"test.csv", 20}}) {
    std::string text = "filename,label\n";
    for (int i = 0; i < classes; ++i) {
      --label;
      for (int k = 0; k < per_class; ++k) {
        text += fmt::format("n{:02}_{}.jpg,n{:02}\n", label, k, label);
      }
    }
    write_bytes(folder / name, text);
  }
}

TEST(MiniImagenet, TrainsOnTheFirst500OfEachClassAndTestsOnTheLast100) {
  const TempFolder folder;
  write_lists(folder.path(), 610);
  const auto [train, test, validation] = open_dataset("mini-imagenet", folder.path());
  EXPECT_EQ(train->size(), 50000);
  EXPECT_EQ(test->size(), 10000);
  EXPECT_EQ(train->classes(), 100);
  const auto place = [&](const Dataset& data, int64_t index) {
    std::vector<float> out(kValues);
    return error_of([&] { data.read(index, nullptr, out.data()); });  // the missing file is named
  };
  EXPECT_TRUE(contains(place(*train, 0), "images/n00_0.jpg: No such file")) << place(*train, 0);
  EXPECT_TRUE(contains(place(*train, 499), "images/n00_499.jpg"));
  EXPECT_TRUE(contains(place(*train, 500), "images/n01_0.jpg"));
  EXPECT_TRUE(contains(place(*test, 0), "images/n00_510.jpg"));
  EXPECT_TRUE(contains(place(*test, 9999), "images/n99_609.jpg"));
}

TEST(MiniImagenet, ShowsAllOfThePictureForTesting) {
  const TempFolder folder;
  write_lists(folder.path(), 600);
  std::string pixels;
  for (int i = 0; i < 84 * 84; ++i) pixels.append(3, i % 84 < 42 ? '\0' : '\xff');
  write_bytes(folder / "images/n07_599.jpg", encode_jpeg(pixels, 84, 84, 3, 100));
  const auto test = open_test_set("mini-imagenet", folder.path());
  std::vector<float> out(kValues);
  EXPECT_EQ(test->read(799, nullptr, out.data()), 7);
  const auto* row = out.data() + 100 * 224;
  EXPECT_NEAR(row[0], -0.485 / 0.229, 0.05);
  EXPECT_NEAR(row[100], -0.485 / 0.229, 0.1);
  EXPECT_NEAR(row[124], (1 - 0.485) / 0.229, 0.1);
  EXPECT_NEAR(row[223], (1 - 0.485) / 0.229, 0.05);
}

TEST(MiniImagenet, NamesWhatIsWrong) {
  const TempFolder folder;
  const auto error = [&] { return error_of([&] { open_test_set("mini-imagenet", folder.path()); }); };
  EXPECT_TRUE(contains(error(), "train.csv is missing; see 'sgdph data fetch mini-imagenet'")) << error();
  write_lists(folder.path(), 599);
  EXPECT_TRUE(contains(error(), "name 599 images of class 'n00' instead of 600 or more")) << error();
  fs::remove_all(folder / "images");
  EXPECT_TRUE(contains(error(), "/images is missing")) << error();
  write_bytes(folder / "val.csv", "filename,label\nx.jpg,n35\n");
  EXPECT_TRUE(contains(error(), "name 85 classes instead of 100")) << error();
}

TEST(SharedData, TheImagenetSampleDecodes) {
  const auto folder = shared_data("imagenet-sample");
  if (folder.empty()) GTEST_SKIP() << "no imagenet-sample in SGDPH_SHARED_DATA or " << kSharedDataDir;
  const TempFolder root;
  fs::create_directory_symlink(folder, root / "train");
  fs::create_directory_symlink(folder, root / "val");
  const auto [train, test, validation] = open_dataset("imagenet", root.path());
  EXPECT_EQ(train->classes(), 24);
  ASSERT_EQ(train->size(), 24);
  for (int64_t i = 0; i < 24; ++i) {
    Random random(1, 0, static_cast<uint64_t>(i));
    read(*train, i, &random);
    read(*test, i, nullptr);
  }
}

TEST(SharedData, TheMiniImagenetListsGive100ClassesOf500And100) {
  const auto lists = shared_data("mini-imagenet-splits");
  if (lists.empty()) GTEST_SKIP() << "no mini-imagenet-splits in SGDPH_SHARED_DATA or " << kSharedDataDir;
  const TempFolder folder;
  fs::create_directory(folder / "images");
  for (const auto* name : {"train.csv", "val.csv", "test.csv"}) fs::create_symlink(lists / name, folder / name);
  const auto [train, test, validation] = open_dataset("mini-imagenet", folder.path());
  EXPECT_EQ(train->size(), 100 * 500);
  EXPECT_EQ(test->size(), 100 * 100);
  EXPECT_EQ(train->classes(), 100);
}

}  // namespace
}  // namespace sgdph::test::image_sets_test
