#pragma once

#include <vector>

namespace sgdph::lab::data {

/// Per channel, of values in [0, 1]: (value - mean) / deviation.
struct Normalisation {
  std::vector<float> mean;
  std::vector<float> deviation;
};

}  // namespace sgdph::lab::data
