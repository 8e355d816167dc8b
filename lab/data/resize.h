#pragma once

#include <cstdint>
#include <vector>

#include "data/crop.h"
#include "data/normalisation.h"

namespace sgdph::lab::data {

/// Red, green, blue and an unused byte for each pixel, so that a pixel is one vector.
struct PixelImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;
};

/// What to make of a part of an image.
struct ResizeOptions {
  int side = 224;         ///< of the square that results
  bool flip = false;      ///< left and right exchanged
  bool confined = false;  ///< do not look at pixels beyond the box, as if it had been cut out first
};

/// Resizes `box` of an image by a triangle filter, widened when shrinking (PIL's "bilinear": antialiased), and writes
/// the normalised values channel by channel. Unlike PIL it does not round to bytes in between.
void resize(
    const PixelImage& image, const Box& box, const ResizeOptions& options, const Normalisation& normalisation,
    float* out);

}  // namespace sgdph::lab::data
