#include "data/openers.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "data/jpeg_images.h"
#include "formats/image_list.h"

namespace sgdph::lab::data {
namespace {

namespace fs = std::filesystem;

/// The images of all lists by class.
std::map<std::string, std::vector<std::string>> read_lists(const DatasetEntry& entry, const fs::path& folder) {
  std::map<std::string, std::vector<std::string>> names_of_class;
  for (const auto& list : entry.train.files) {
    const auto path = folder / list.name;
    if (!fs::exists(path)) fail("{} is missing", path.string());
    for (auto& image : formats::parse_image_list(read_file(path), path.string())) {
      names_of_class[image.label].push_back(std::move(image.filename));
    }
  }
  return names_of_class;
}

fs::path image_folder_of(const fs::path& folder) {
  return folder / "images";
}

}  // namespace

std::unique_ptr<Dataset> open_mini_imagenet(const DatasetEntry& entry, const fs::path& folder, bool train) {
  const auto names_of_class = read_lists(entry, folder);
  if (names_of_class.size() != static_cast<size_t>(entry.classes)) {
    fail("the three lists in {} name {} classes instead of {}", folder.string(), names_of_class.size(), entry.classes);
  }
  const auto images = image_folder_of(folder);
  if (!fs::is_directory(images)) fail("the folder {} is missing", images.string());
  const auto train_each = entry.train.images / entry.classes;
  const auto test_each = entry.test.images / entry.classes;
  ImageFiles files;
  const auto number = files.add_folder(images);
  int64_t label = 0;
  for (const auto& [name, all] : names_of_class) {
    if (static_cast<int64_t>(all.size()) < train_each + test_each) {
      fail(
          "the lists in {} name {} images of class '{}' instead of {} or more", folder.string(), all.size(), name,
          train_each + test_each);
    }
    const auto begin = train ? all.begin() : all.end() - test_each;
    const auto end = train ? all.begin() + train_each : all.end();
    for (auto image = begin; image != end; ++image) files.add(number, *image, label);
    ++label;
  }
  return std::make_unique<JpegImages>(std::move(files), label, JpegImages::TestView::kWhole);
}

std::vector<fs::path> mini_imagenet_pictures(const DatasetEntry& entry, const fs::path& folder) {
  std::vector<fs::path> pictures;
  for (const auto& [name, all] : read_lists(entry, folder)) {
    for (const auto& image : all) pictures.push_back(image_folder_of(folder) / image);
  }
  return pictures;
}

}  // namespace sgdph::lab::data
