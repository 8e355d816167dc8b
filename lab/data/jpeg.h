#pragma once

#include <string>
#include <string_view>

#include "data/resize.h"

namespace sgdph::lab::data {

/// A JPEG in memory, its header read: the size decides on the crop, and the crop on how much of it to decode. The bytes
/// must outlive it. What is not a JPEG, or damaged, is a UserError that begins with `where`.
class Jpeg {
 public:
  Jpeg(std::string_view bytes, std::string where);

  int width() const { return width_; }
  int height() const { return height_; }

  /// Decodes to `image`, at a half, a quarter or an eighth of its size if `box` keeps at least `side` pixels in width
  /// and height; returns the box in the image so decoded. Grey and CMYK pictures become RGB.
  Box decode(const Box& box, int side, PixelImage& image) const;

 private:
  std::string_view bytes_;
  std::string where_;
  int width_ = 0;
  int height_ = 0;
  bool cmyk_ = false;
};

}  // namespace sgdph::lab::data
