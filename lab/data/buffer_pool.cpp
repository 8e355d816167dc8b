#include "data/buffer_pool.h"

#include <ATen/ops/from_blob.h>

#include <mutex>
#include <new>
#include <utility>

namespace sgdph::lab::data {
namespace {

// As LibTorch aligns its own.
constexpr std::align_val_t kAlignment{64};

struct Free {
  void operator()(float* memory) const { ::operator delete(memory, kAlignment); }
};

struct Buffer {
  std::unique_ptr<float, Free> memory;
  size_t values = 0;
};

}  // namespace

struct BufferPool::Shelf {
  std::mutex mutex;
  std::vector<Buffer> unused;

  Buffer take(size_t values) {
    {
      const std::lock_guard lock(mutex);
      for (auto& candidate : unused) {
        if (candidate.values < values) continue;
        std::swap(candidate, unused.back());
        auto buffer = std::move(unused.back());
        unused.pop_back();
        return buffer;
      }
    }
    Buffer buffer;
    buffer.memory.reset(static_cast<float*>(::operator new(values * sizeof(float), kAlignment)));
    buffer.values = values;
    return buffer;
  }

  void put_back(Buffer buffer) {
    const std::lock_guard lock(mutex);
    unused.push_back(std::move(buffer));
  }
};

BufferPool::BufferPool() : shelf_(std::make_shared<Shelf>()) {}

at::Tensor BufferPool::tensor(const std::vector<int64_t>& sizes) {
  size_t values = 1;
  for (const auto size : sizes) values *= static_cast<size_t>(size);
  // A function object that is kept must be copyable, which a Buffer is not.
  auto lent = std::make_shared<Buffer>(shelf_->take(values));
  auto* memory = lent->memory.get();
  const auto give_back = [lent = std::move(lent), shelf = shelf_](void*) { shelf->put_back(std::move(*lent)); };
  return at::from_blob(memory, sizes, give_back, at::TensorOptions().dtype(at::kFloat));
}

}  // namespace sgdph::lab::data
