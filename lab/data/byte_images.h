#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace sgdph::lab::data {

/// Images kept in memory as bytes, channel by channel. Augmented by a flip with probability 1/2, after a crop at random
/// from the image with a black border of `padding` pixels.
class ByteImages : public Dataset {
 public:
  struct Content {
    ImageShape shape;
    int64_t classes = 0;
    std::vector<uint8_t> labels;
    std::string pixels;
    Normalisation normalisation;
    int64_t padding = 0;
  };

  explicit ByteImages(Content content);

  int64_t size() const override { return static_cast<int64_t>(content_.labels.size()); }
  int64_t classes() const override { return content_.classes; }
  ImageShape shape() const override { return content_.shape; }
  int64_t read(int64_t index, Random* random, float* out) const override;

 private:
  /// A byte's normalised value: a look-up is cheaper than the arithmetic and exact for all.
  using Table = std::array<float, 256>;

  Content content_;
  std::vector<Table> tables_;  ///< of each channel
};

}  // namespace sgdph::lab::data
