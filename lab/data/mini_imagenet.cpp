#include "data/mini_imagenet.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "data/jpeg_images.h"
#include "formats/image_list.h"

namespace sgdph::lab {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMiniClasses = 100;
constexpr size_t kTrain = 500;
constexpr size_t kTest = 100;

}  // namespace

std::unique_ptr<Dataset> open_mini_imagenet(const fs::path& folder, bool train) {
  std::map<std::string, std::vector<std::string>> names_of_class;
  for (const auto* list : {"train.csv", "val.csv", "test.csv"}) {
    const auto path = folder / list;
    if (!fs::exists(path)) fail("{} is missing", path.string());
    for (auto& image : parse_image_list(read_file(path), path.string())) {
      names_of_class[image.label].push_back(std::move(image.filename));
    }
  }
  if (names_of_class.size() != kMiniClasses) {
    fail("the three lists in {} name {} classes instead of {}", folder.string(), names_of_class.size(), kMiniClasses);
  }
  const auto images = folder / "images";
  if (!fs::is_directory(images)) fail("the folder {} is missing", images.string());
  ImageFiles files;
  const auto number = files.add_folder(images);
  int64_t label = 0;
  for (const auto& [name, all] : names_of_class) {
    if (all.size() < kTrain + kTest) {
      fail(
          "the lists in {} name {} images of class '{}' instead of {} or more", folder.string(), all.size(), name,
          kTrain + kTest);
    }
    const auto begin = train ? all.begin() : all.end() - kTest;
    const auto end = train ? all.begin() + kTrain : all.end();
    for (auto image = begin; image != end; ++image) files.add(number, *image, label);
    ++label;
  }
  return std::make_unique<JpegImages>(std::move(files), label, JpegImages::TestView::kWhole);
}

}  // namespace sgdph::lab
