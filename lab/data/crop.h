#pragma once

#include "data/random.h"

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

}  // namespace sgdph::lab::data
