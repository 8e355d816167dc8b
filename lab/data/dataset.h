#pragma once

#include <sgdph/detail/mix.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sgdph::lab::data {

/// A small counter-based generator (SplitMix64): a stream is a pure function of its seeds, so that an augmentation
/// depends on seed, epoch and image only and never on the number of workers.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0, uint64_t substream = 0)
      : state_(detail::mix(detail::mix(detail::mix(seed) + stream) + substream)) {}

  uint64_t bits() {
    state_ += detail::kGolden;
    return detail::mix(state_);
  }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in [0, n); the bias of a 64-bit remainder is below n / 2^64.
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }

 private:
  uint64_t state_;
};

/// Per channel, of values in [0, 1]: (value - mean) / deviation.
struct Normalisation {
  std::vector<float> mean;
  std::vector<float> deviation;
};

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
