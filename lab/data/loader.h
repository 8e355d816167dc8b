#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "data/dataset.h"

namespace sgdph::lab::data {

struct LoaderOptions {
  int64_t batch_size = 128;
  int64_t workers = 1;   ///< 0: batches are made in the caller's thread
  int64_t prefetch = 4;  ///< batches made ahead per worker
  bool shuffle = true;   ///< and augment; false: in order, as for testing
  uint64_t seed = 0;
  int64_t limit = 0;          ///< > 0: only so many images, a fixed choice by seed (shuffle) or the first (otherwise)
  bool skip_damaged = false;  ///< leave damaged images out and count them, instead of stopping
  bool pin_memory = false;    ///< for copies to a GPU
  /// Processes that share the epoch: this one has every `ranks`-th batch from where it starts, the `rank`-th first.
  int64_t rank = 0, ranks = 1;
};

struct Batch {
  at::Tensor images;   ///< float [n, channels, height, width]
  at::Tensor labels;   ///< int64 [n]
  int64_t number = 0;  ///< in its epoch, of all ranks'
};

/// Batches of an epoch, prepared ahead by workers. The stream is a function of seed and epoch only: order and
/// augmentation are the same for any number of workers, and from any batch on.
class Loader {
 public:
  /// The data set must outlive the loader. Refuses a batch larger than the data.
  Loader(const Dataset& data, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Begins epoch `epoch` at its batch number `first`; stops what was under way.
  void start(int64_t epoch, int64_t first = 0);
  /// The next batch, or nothing at the end of the epoch. What went wrong in a worker is thrown here. Of several ranks'
  /// a batch whose images are all damaged is empty; otherwise it is passed over.
  std::optional<Batch> next();

  /// The number of the next batch: that of batches handed out or passed over because all their images are damaged. Of
  /// one rank among several, the number of its next batch.
  int64_t position() const;
  int64_t images() const;   ///< of an epoch
  int64_t batches() const;  ///< of an epoch, the last, smaller one included
  int64_t batch_size() const;
  int64_t damaged() const;  ///< images left out so far

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sgdph::lab::data
