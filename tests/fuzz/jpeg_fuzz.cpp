// JPEGs: whatever the bytes, a picture of the size that its header tells, within the limits, or a UserError of one
// line.

#include "data/jpeg.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sgdph::lab;
  refused_in_one_line([&] {
    const data::Jpeg jpeg({reinterpret_cast<const char*>(data), size}, "fuzz");
    SGDPH_FUZZ_CHECK(jpeg.width() > 0 && jpeg.height() > 0);
    // The header is read of any; what would take long is decoded elsewhere.
    if (int64_t{jpeg.width()} * jpeg.height() > 10000) return;
    data::PixelImage image;
    const data::Box whole{0, 0, static_cast<double>(jpeg.width()), static_cast<double>(jpeg.height())};
    const auto box = jpeg.decode(whole, 8, image);
    SGDPH_FUZZ_CHECK(image.pixels.size() == static_cast<size_t>(image.width) * static_cast<size_t>(image.height) * 4);
    SGDPH_FUZZ_CHECK(box.width <= image.width && box.height <= image.height);
  });
  return 0;
}
