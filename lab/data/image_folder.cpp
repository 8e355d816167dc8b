#include "data/openers.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/jpeg_images.h"

namespace sgdph::lab::data {
namespace {

namespace fs = std::filesystem;

template <class Accept>
std::vector<std::string> sorted_names(const fs::path& folder, Accept accept) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (accept(*entry)) names.push_back(entry->path().filename().string());
  }
  if (error) fail("cannot list {}: {}", folder.string(), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_jpeg(const fs::directory_entry& entry) {
  auto ending = entry.path().extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".jpg" || ending == ".jpeg";
}

bool is_class(const fs::directory_entry& entry) {
  std::error_code error;
  return entry.is_directory(error) && entry.path().filename().string().front() != '.';
}

std::vector<std::string> class_names(const fs::path& part) {
  if (!fs::is_directory(part)) fail("the folder {} is missing", part.string());
  auto names = sorted_names(part, is_class);
  if (names.empty()) fail("{} has no class folders; put a folder for each class there, with its images", part.string());
  return names;
}

void check_same_classes(const fs::path& train, const fs::path& val) {
  const auto in_train = class_names(train);
  const auto in_val = class_names(val);
  if (in_train == in_val) return;
  std::vector<std::string> differing;
  std::set_symmetric_difference(
      in_train.begin(), in_train.end(), in_val.begin(), in_val.end(), std::back_inserter(differing));
  const bool train_has_it = std::binary_search(in_train.begin(), in_train.end(), differing.front());
  fail(
      "{} has {} class folders and {} has {}: '{}' is in {} only; give both the same classes", train.string(),
      in_train.size(), val.string(), in_val.size(), differing.front(),
      (train_has_it ? train : val).filename().string());
}

}  // namespace

std::unique_ptr<Dataset> open_image_folder(const DatasetEntry& entry, const fs::path& root, bool train) {
  const auto train_folder = root / entry.train.files[0].name;
  const auto test_folder = root / entry.test.files[0].name;
  if (train || fs::is_directory(train_folder)) check_same_classes(train_folder, test_folder);
  const auto& part = train ? train_folder : test_folder;
  const auto classes = class_names(part);
  ImageFiles files;
  for (size_t label = 0; label < classes.size(); ++label) {
    const auto folder = part / classes[label];
    const auto names = sorted_names(folder, is_jpeg);
    if (names.empty()) fail("the class folder {} holds no JPEG files; fill it or remove it", folder.string());
    const auto number = files.add_folder(folder);
    for (const auto& name : names) files.add(number, name, static_cast<int64_t>(label));
  }
  return std::make_unique<JpegImages>(
      std::move(files), static_cast<int64_t>(classes.size()), JpegImages::TestView::kCentre);
}

std::vector<fs::path> image_folder_pictures(const DatasetEntry& entry, const fs::path& root) {
  std::vector<fs::path> pictures;
  for (const auto* part : {&entry.train, &entry.test}) {
    const auto folder = root / part->files[0].name;
    for (const auto& name : class_names(folder)) {
      for (const auto& file : sorted_names(folder / name, is_jpeg)) pictures.push_back(folder / name / file);
    }
  }
  return pictures;
}

}  // namespace sgdph::lab::data
