#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/random.h"

namespace sgdph::lab::data {

/// What a network must know of a data set.
struct ImageShape {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t values() const { return channels * height * width; }
};

/// A labelled set of images, delivered as normalised floats. Reading is thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual int64_t classes() const = 0;
  /// Of an image as it is delivered.
  virtual ImageShape shape() const = 0;

  /// Writes image `index` (channel by channel) to `out` and returns its label. With `random` the image is augmented,
  /// drawing from it; without, it is prepared as for testing. A damaged image is a UserError that names the file.
  virtual int64_t read(int64_t index, Random* random, float* out) const = 0;
};

}  // namespace sgdph::lab::data
