#include "data/jpeg.h"

#include <turbojpeg.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/error.h"

namespace sgdph::lab::data {
namespace {

// The largest picture of ImageNet has 61 million pixels; a header that claims much more is not worth the memory.
constexpr int64_t kMaxPixels = 100'000'000;
// A progressive picture of thousands of scans takes hours to decode: such are made, not photographed.
constexpr int kFlags = TJFLAG_LIMITSCANS;

struct Destroy {
  void operator()(void* handle) const { tjDestroy(handle); }
};
// Costly to make and not thread-safe: one for each thread.
thread_local std::unique_ptr<void, Destroy> decompressor_of_thread;

tjhandle decompressor() {
  if (!decompressor_of_thread) decompressor_of_thread.reset(tjInitDecompress());
  if (!decompressor_of_thread) fail("libturbojpeg cannot start: {}", tjGetErrorStr2(nullptr));
  return decompressor_of_thread.get();
}

const unsigned char* unsigned_bytes(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// libjpeg repairs what it can and warns: the picture is then partly grey or shifted. Stray bytes before a marker,
/// which many cameras write, are left out of the picture and harm nothing.
bool harmless(tjhandle handle) {
  return tjGetErrorCode(handle) == TJERR_WARNING &&
         std::string_view(tjGetErrorStr2(handle)).find("extraneous bytes before marker") != std::string_view::npos;
}

[[noreturn]] void refuse_damaged(const std::string& where, const std::string& reason) {
  // A decompressor that met damage keeps half of its state and would refuse the next picture, too.
  decompressor_of_thread.reset();
  fail("{}: damaged JPEG ({}); replace the file, or leave such images out with --skip-damaged", where, reason);
}

/// As PIL: inks are stored inverted, as Adobe's programs do, so that 255 means none.
void cmyk_to_rgb(std::vector<uint8_t>& pixels) {
  for (size_t i = 0; i < pixels.size(); i += 4) {
    const unsigned black = pixels[i + 3];
    for (size_t c = 0; c < 3; ++c) pixels[i + c] = static_cast<uint8_t>((pixels[i + c] * black + 127) / 255);
  }
}

/// The smallest scale in eighths that leaves `length` at least `side`; enlarging is left to the resizing. Only 1, 2, 4
/// and 8 have vector code in libjpeg-turbo: decoding to 5, 6 or 7 eighths takes longer than decoding all.
int eighths_for(double length, int side) {
  int eighths = 1;
  while (eighths < 8 && length * eighths < 8.0 * side) eighths *= 2;
  return eighths;
}

}  // namespace

Jpeg::Jpeg(std::string_view bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {
  if (bytes.substr(0, 2) != "\xff\xd8") {
    fail(
        "{} is not a JPEG: {}; replace the file, or leave such images out with --skip-damaged", where_,
        bytes.empty() ? "it is empty" : fmt::format("it begins with {:?}", bytes.substr(0, 4)));
  }
  auto* handle = decompressor();
  int subsampling = -1;
  int colours = -1;
  if (tjDecompressHeader3(handle, unsigned_bytes(bytes), bytes.size(), &width_, &height_, &subsampling, &colours) !=
          0 &&
      !harmless(handle)) {
    refuse_damaged(where_, tjGetErrorStr2(handle));
  }
  if (width_ < 1 || height_ < 1 || static_cast<int64_t>(width_) * height_ > kMaxPixels) {
    refuse_damaged(where_, fmt::format("its size is {} x {} pixels", width_, height_));
  }
  cmyk_ = colours == TJCS_CMYK || colours == TJCS_YCCK;
}

Box Jpeg::decode(const Box& box, int side, PixelImage& image) const {
  auto* handle = decompressor();
  const int eighths = std::max(eighths_for(box.width, side), eighths_for(box.height, side));
  const tjscalingfactor factor{eighths, 8};
  image.width = TJSCALED(width_, factor);
  image.height = TJSCALED(height_, factor);
  image.pixels.resize(static_cast<size_t>(image.width) * static_cast<size_t>(image.height) * 4);
  if (tjDecompress2(
          handle, unsigned_bytes(bytes_), bytes_.size(), image.pixels.data(), image.width, 0, image.height,
          cmyk_ ? TJPF_CMYK : TJPF_RGBX, kFlags) != 0 &&
      !harmless(handle)) {
    refuse_damaged(where_, tjGetErrorStr2(handle));
  }
  if (cmyk_) cmyk_to_rgb(image.pixels);
  // The shrunk picture is rounded up to whole pixels; its scale is n / 8 all the same.
  const double scale = eighths / 8.0;
  return {box.x * scale, box.y * scale, box.width * scale, box.height * scale};
}

}  // namespace sgdph::lab::data
