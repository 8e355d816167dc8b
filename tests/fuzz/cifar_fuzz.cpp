// The CIFAR readers: whatever the bytes, images with labels in range, or a UserError that leaves the images as they
// were.

#include "base/error.h"
#include "formats/cifar.h"
#include "fuzz.h"

namespace {

void parse(std::string_view bytes, sgdph::lab::formats::CifarFormat format, unsigned classes, size_t record) {
  sgdph::lab::formats::CifarImages images;
  images.labels.push_back(0);
  images.pixels.assign(sgdph::lab::formats::kCifarPixels, 'x');
  try {
    sgdph::lab::formats::append_cifar(bytes, format, "fuzz", images);
    SGDPH_FUZZ_CHECK(images.labels.size() > 1);
    SGDPH_FUZZ_CHECK((images.labels.size() - 1) * record == bytes.size());
    SGDPH_FUZZ_CHECK(images.pixels.size() == images.labels.size() * sgdph::lab::formats::kCifarPixels);
    for (const auto label : images.labels) SGDPH_FUZZ_CHECK(label < classes);
  } catch (const sgdph::lab::UserError&) {
    SGDPH_FUZZ_CHECK(images.labels.size() == 1 && images.pixels.size() == sgdph::lab::formats::kCifarPixels);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  parse(bytes, sgdph::lab::formats::CifarFormat::kCifar10, 10, 3073);
  parse(bytes, sgdph::lab::formats::CifarFormat::kCifar100, 100, 3074);
  return 0;
}
