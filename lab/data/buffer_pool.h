#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace sgdph::lab::data {

/// Memory for batches, used again when the last tensor that refers to it is gone: fresh memory of 40 MB and more comes
/// from the system page by page, which costs as much as filling it. Thread-safe; tensors may outlive the pool.
class BufferPool {
 public:
  BufferPool();

  /// Floats, not initialised.
  at::Tensor tensor(const std::vector<int64_t>& sizes);

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
};

}  // namespace sgdph::lab::data
