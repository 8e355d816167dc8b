#include "data/jpeg_images.h"

#include <utility>

#include "base/files.h"
#include "data/jpeg.h"
#include "data/resize.h"

namespace sgdph::lab::data {
namespace {

constexpr int kSide = 224;
constexpr int kShorterSide = 256;

const Normalisation& normalisation() {
  static const Normalisation imagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  return imagenet;
}

}  // namespace

int64_t ImageFiles::add_folder(std::filesystem::path folder) {
  folders_.push_back(std::move(folder));
  return static_cast<int64_t>(folders_.size()) - 1;
}

void ImageFiles::add(int64_t folder, std::string_view name, int64_t label) {
  names_ += name;
  entries_.push_back({names_.size(), static_cast<int32_t>(folder), static_cast<int32_t>(label)});
}

std::filesystem::path ImageFiles::path(int64_t index) const {
  const auto i = static_cast<size_t>(index);
  const auto begin = i == 0 ? 0 : entries_[i - 1].name_end;
  return folders_[static_cast<size_t>(entries_[i].folder)] / names_.substr(begin, entries_[i].name_end - begin);
}

JpegImages::JpegImages(ImageFiles files, int64_t classes, TestView test_view)
    : files_(std::move(files)), classes_(classes), test_view_(test_view) {}

ImageShape JpegImages::shape() const {
  return {3, kSide, kSide};
}

int64_t JpegImages::read(int64_t index, Random* random, float* out) const {
  thread_local PixelImage image;
  const auto path = files_.path(index);
  const auto bytes = read_file(path);
  const Jpeg jpeg(bytes, path.string());
  ResizeOptions options;
  options.side = kSide;
  Box box{0, 0, static_cast<double>(jpeg.width()), static_cast<double>(jpeg.height())};
  if (random != nullptr) {
    box = random_resized_crop(jpeg.width(), jpeg.height(), *random);
    options.flip = random->below(2) == 1;
    options.confined = true;
  } else if (test_view_ == TestView::kCentre) {
    box = centre_crop(jpeg.width(), jpeg.height(), kShorterSide, kSide);
  }
  const auto decoded_box = jpeg.decode(box, kSide, image);
  resize(image, decoded_box, options, normalisation(), out);
  return files_.label(index);
}

}  // namespace sgdph::lab::data
