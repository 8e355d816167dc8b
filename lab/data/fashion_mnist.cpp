#include "data/openers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/byte_images.h"
#include "formats/idx.h"

namespace sgdph::lab::data {
namespace {

namespace fs = std::filesystem;

/// The file as it is published, or unpacked.
fs::path find_file(const fs::path& folder, const DatasetFile& file) {
  const fs::path packed = folder / file.name;
  const auto plain = folder / packed.stem();
  for (const auto& path : {packed, plain}) {
    if (fs::exists(path)) return path;
  }
  fail("{} is missing, with and without {}", plain.string(), packed.extension().string());
}

}  // namespace

std::unique_ptr<Dataset> open_fashion_mnist(const DatasetEntry& entry, const fs::path& folder, bool train) {
  const auto& part = train ? entry.train : entry.test;
  const auto images_path = find_file(folder, part.files[0]);
  const auto labels_path = find_file(folder, part.files[1]);
  auto images = formats::read_idx_file(images_path);
  const auto labels = formats::read_idx_file(labels_path);
  const auto& [channels, height, width] = entry.shape;
  if (images.sizes.size() != 3 || images.sizes[1] != height || images.sizes[2] != width) {
    fail(
        "{} holds {} values instead of images of {} x {}", images_path.string(), fmt::join(images.sizes, " x "), height,
        width);
  }
  if (labels.sizes.size() != 1 || labels.sizes[0] != images.sizes[0]) {
    fail(
        "{} holds {} labels for the {} images of {}", labels_path.string(), fmt::join(labels.sizes, " x "),
        images.sizes[0], images_path.string());
  }
  if (images.sizes[0] == 0) fail("{} holds no images", images_path.string());
  ByteImages::Content content;
  content.labels.assign(labels.data.begin(), labels.data.end());
  const auto wrong =
      std::find_if(content.labels.begin(), content.labels.end(), [&](auto label) { return label >= entry.classes; });
  if (wrong != content.labels.end()) {
    fail(
        "{}: label {} is {}, the classes are 0 to {}", labels_path.string(), wrong - content.labels.begin(), *wrong,
        entry.classes - 1);
  }
  content.shape = entry.shape;
  content.classes = entry.classes;
  content.pixels = std::move(images.data);
  content.normalisation = {{0.2860F}, {0.3530F}};
  return std::make_unique<ByteImages>(std::move(content));
}

}  // namespace sgdph::lab::data
