#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace sgdph::lab::data {

/// A part of an image, in pixels from its upper left corner.
struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// Whole pixels of 8 to 100 % of the area, in a shape between 3:4 and 4:3 (log-uniform), at a random place; the largest
/// centred box of such a shape if ten tries do not fit. As torchvision's RandomResizedCrop.
Box random_resized_crop(int width, int height, Random& random);

/// What becomes the centre `side` x `side` when the shorter side is resized to `shorter`. As torchvision's Resize and
/// CenterCrop, in one step.
Box centre_crop(int width, int height, int shorter, int side);

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
