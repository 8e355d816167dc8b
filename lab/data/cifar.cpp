#include "data/cifar.h"

#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "data/byte_images.h"

namespace sgdph::lab {
namespace {

namespace fs = std::filesystem;

struct Edition {
  const char* folder;  ///< that the archive unpacks to
  std::vector<const char*> train;
  const char* test;
  int64_t classes;
  Normalisation normalisation;
};

const Edition& edition_of(CifarFormat format) {
  static const Edition cifar10{
      "cifar-10-batches-bin",
      {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
      "test_batch.bin",
      10,
      {{0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}}};
  static const Edition cifar100{
      "cifar-100-binary", {"train.bin"}, "test.bin", 100, {{0.5071F, 0.4865F, 0.4409F}, {0.2673F, 0.2564F, 0.2762F}}};
  return format == CifarFormat::kCifar10 ? cifar10 : cifar100;
}

}  // namespace

std::unique_ptr<Dataset> open_cifar(const fs::path& folder, CifarFormat format, bool train) {
  const auto& edition = edition_of(format);
  const auto inner = folder / edition.folder;
  const auto& holder = fs::is_directory(inner) ? inner : folder;
  CifarImages images;
  for (const auto* name : train ? edition.train : std::vector<const char*>{edition.test}) {
    const auto path = holder / name;
    if (!fs::exists(path)) fail("{} is missing", path.string());
    append_cifar(read_file(path), format, path.string(), images);
  }
  ByteImages::Content content;
  content.shape = {3, 32, 32};
  content.classes = edition.classes;
  content.labels = std::move(images.labels);
  content.pixels = std::move(images.pixels);
  content.normalisation = edition.normalisation;
  content.padding = 4;
  return std::make_unique<ByteImages>(std::move(content));
}

}  // namespace sgdph::lab
