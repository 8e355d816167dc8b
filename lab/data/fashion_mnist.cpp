#include "data/fashion_mnist.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/byte_images.h"
#include "formats/idx.h"

namespace sgdph::lab {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kImageSide = 28;
constexpr unsigned kFashionClasses = 10;

fs::path find_file(const fs::path& folder, const std::string& name) {
  for (const auto* ending : {".gz", ""}) {
    auto path = folder / (name + ending);
    if (fs::exists(path)) return path;
  }
  fail("{} is missing, with and without .gz", (folder / name).string());
}

}  // namespace

std::unique_ptr<Dataset> open_fashion_mnist(const fs::path& folder, bool train) {
  const std::string part = train ? "train" : "t10k";
  const auto images_path = find_file(folder, part + "-images-idx3-ubyte");
  const auto labels_path = find_file(folder, part + "-labels-idx1-ubyte");
  auto images = read_idx_file(images_path);
  const auto labels = read_idx_file(labels_path);
  if (images.sizes.size() != 3 || images.sizes[1] != kImageSide || images.sizes[2] != kImageSide) {
    fail(
        "{} holds {} values instead of images of {} x {}", images_path.string(), fmt::join(images.sizes, " x "),
        kImageSide, kImageSide);
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
      std::find_if(content.labels.begin(), content.labels.end(), [](auto l) { return l >= kFashionClasses; });
  if (wrong != content.labels.end()) {
    fail(
        "{}: label {} is {}, the classes are 0 to {}", labels_path.string(), wrong - content.labels.begin(), *wrong,
        kFashionClasses - 1);
  }
  content.shape = {1, kImageSide, kImageSide};
  content.classes = kFashionClasses;
  content.pixels = std::move(images.data);
  content.normalisation = {{0.2860F}, {0.3530F}};
  return std::make_unique<ByteImages>(std::move(content));
}

}  // namespace sgdph::lab
