#include "data/openers.h"

#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "data/byte_images.h"
#include "formats/cifar.h"

namespace sgdph::lab::data {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Dataset> open_cifar(
    const DatasetEntry& entry, const fs::path& folder, bool train, formats::CifarFormat format,
    Normalisation normalisation) {
  formats::CifarImages images;
  for (const auto& file : train ? entry.train.files : entry.test.files) {
    const auto path = folder / file.name;
    if (!fs::exists(path)) fail("{} is missing", path.string());
    formats::append_cifar(read_file(path), format, path.string(), images);
  }
  ByteImages::Content content;
  content.shape = entry.shape;
  content.classes = entry.classes;
  content.labels = std::move(images.labels);
  content.pixels = std::move(images.pixels);
  content.normalisation = std::move(normalisation);
  content.padding = 4;
  return std::make_unique<ByteImages>(std::move(content));
}

}  // namespace

std::unique_ptr<Dataset> open_cifar10(const DatasetEntry& entry, const fs::path& folder, bool train) {
  return open_cifar(
      entry, folder, train, formats::CifarFormat::kCifar10, {{0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}});
}

std::unique_ptr<Dataset> open_cifar100(const DatasetEntry& entry, const fs::path& folder, bool train) {
  return open_cifar(
      entry, folder, train, formats::CifarFormat::kCifar100,
      {{0.5071F, 0.4865F, 0.4409F}, {0.2673F, 0.2564F, 0.2762F}});
}

}  // namespace sgdph::lab::data
