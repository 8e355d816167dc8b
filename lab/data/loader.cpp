#include "data/loader.h"

#include "base/error.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

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

// Streams of the generator: epochs count from 0, images of an epoch from 1.
constexpr uint64_t kChoiceStream = ~uint64_t{0};

void check(const LoaderOptions& options, int64_t images) {
  if (options.batch_size < 1) fail("the batch size is {}; it must be at least 1", options.batch_size);
  if (options.workers < 0) fail("the number of workers is {}; it must not be negative", options.workers);
  if (options.prefetch < 1) fail("workers are to prepare {} batches ahead; it must be at least 1", options.prefetch);
  if (options.limit < 0) fail("the limit of images is {}; it must not be negative (0: none)", options.limit);
  if (options.rank < 0 || options.rank >= options.ranks) fail("there is no rank {} of {}", options.rank, options.ranks);
  if (options.batch_size > images) {
    fail("a batch of {} is larger than the data, {} images; choose a smaller one", options.batch_size, images);
  }
}

/// Fisher and Yates.
void shuffle(std::vector<int64_t>& order, Random random) {
  for (auto left = static_cast<int64_t>(order.size()); left > 1; --left) {
    std::swap(order[static_cast<size_t>(left - 1)], order[static_cast<size_t>(random.below(left))]);
  }
}

/// The images an epoch shows, by a fixed choice.
std::vector<int64_t> chosen_images(const LoaderOptions& options, int64_t size) {
  std::vector<int64_t> images(static_cast<size_t>(size));
  std::iota(images.begin(), images.end(), 0);
  if (options.limit > 0 && options.limit < size) {
    if (options.shuffle) shuffle(images, Random(options.seed, kChoiceStream));
    images.resize(static_cast<size_t>(options.limit));
    std::sort(images.begin(), images.end());
  }
  return images;
}

/// What became of a batch.
struct Made {
  Batch batch;
  int64_t images = 0;
  int64_t damaged = 0;
  std::exception_ptr error;
};

}  // namespace

struct Loader::Impl {
  Impl(const Dataset& dataset, LoaderOptions loader_options)
      : data(dataset), options(loader_options), chosen(chosen_images(options, data.size())) {
    check(options, images());
  }
  ~Impl() { stop(); }

  int64_t images() const { return static_cast<int64_t>(chosen.size()); }
  int64_t batches() const { return (images() + options.batch_size - 1) / options.batch_size; }

  void start(int64_t new_epoch, int64_t first) {
    TORCH_CHECK(new_epoch >= 0, "Loader: epoch ", new_epoch, " is negative");
    TORCH_CHECK(first >= 0 && first <= batches(), "Loader: batch ", first, " of ", batches());
    stop();
    epoch = new_epoch;
    order = chosen;
    if (options.shuffle) shuffle(order, Random(options.seed, static_cast<uint64_t>(epoch)));
    delivered = claimed = first + options.rank;
    const auto count = std::min(options.workers, (batches() - first + options.ranks - 1) / options.ranks);
    for (int64_t i = 0; i < count; ++i) workers.emplace_back([this] { work(); });
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    for (auto& worker : workers) worker.join();
    workers.clear();
    made.clear();
    stopping = false;
  }

  /// Fills a batch with plain loops: no LibTorch operator runs here that would start threads of its own or draw
  /// numbers.
  Made make(int64_t number) {
    Made result;
    try {
      fill(number, result);
    } catch (...) {
      result.error = std::current_exception();
    }
    return result;
  }

  void fill(int64_t number, Made& result) {
    const auto begin = number * options.batch_size;
    const auto count = std::min(options.batch_size, images() - begin);
    const auto shape = data.shape();
    result.batch.number = number;
    auto& tensor = result.batch.images;
    auto& labels = result.batch.labels;
    const std::vector<int64_t> sizes{count, shape.channels, shape.height, shape.width};
    const auto cpu = at::TensorOptions().pinned_memory(options.pin_memory);
    tensor = options.pin_memory ? at::empty(sizes, cpu.dtype(at::kFloat)) : buffers.tensor(sizes);
    labels = at::empty({count}, cpu.dtype(at::kLong));
    auto* values = tensor.data_ptr<float>();
    auto* label = labels.data_ptr<int64_t>();
    for (int64_t i = 0; i < count && !stopping; ++i) {
      const auto index = order[static_cast<size_t>(begin + i)];
      Random random(options.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index) + 1);
      try {
        *label = data.read(index, options.shuffle ? &random : nullptr, values);
      } catch (const UserError&) {
        if (!options.skip_damaged) throw;
        ++result.damaged;
        continue;
      }
      values += shape.values();
      ++label;
      ++result.images;
    }
    if (result.images < count) {
      tensor = tensor.narrow(0, 0, result.images);
      labels = labels.narrow(0, 0, result.images);
    }
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      const auto ahead = options.prefetch * options.workers * options.ranks;
      changed.wait(lock, [&] { return stopping || claimed >= batches() || claimed < delivered + ahead; });
      if (stopping || claimed >= batches()) return;
      const auto number = std::exchange(claimed, claimed + options.ranks);
      lock.unlock();
      auto result = make(number);
      lock.lock();
      made.emplace(number, std::move(result));
      changed.notify_all();
    }
  }

  /// The next batch in order, whoever made it.
  Made take() {
    if (workers.empty()) return make(std::exchange(delivered, delivered + options.ranks));
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return made.count(delivered) > 0; });
    auto result = std::move(made.extract(delivered).mapped());
    delivered += options.ranks;
    changed.notify_all();
    return result;
  }

  const Dataset& data;
  const LoaderOptions options;
  const std::vector<int64_t> chosen;
  BufferPool buffers;
  std::vector<int64_t> order;  ///< of this epoch; empty before the first
  int64_t epoch = 0;
  int64_t damaged = 0;

  std::mutex mutex;  ///< of what follows
  std::condition_variable changed;
  std::vector<std::thread> workers;
  std::map<int64_t, Made> made;
  int64_t claimed = 0;    ///< the next batch to make
  int64_t delivered = 0;  ///< the next batch to hand out
  std::atomic<bool> stopping{false};
};

Loader::Loader(const Dataset& data, LoaderOptions options) : impl_(std::make_unique<Impl>(data, options)) {}

Loader::~Loader() = default;

void Loader::start(int64_t epoch, int64_t first) {
  impl_->start(epoch, first);
}

std::optional<Batch> Loader::next() {
  TORCH_CHECK(!impl_->order.empty(), "Loader: start an epoch first");
  while (impl_->delivered < impl_->batches()) {
    auto made = impl_->take();
    if (made.error) std::rethrow_exception(made.error);
    impl_->damaged += made.damaged;
    if (made.images > 0 || impl_->options.ranks > 1) return std::move(made.batch);
  }
  return std::nullopt;
}

int64_t Loader::position() const {
  return impl_->delivered;
}

int64_t Loader::images() const {
  return impl_->images();
}

int64_t Loader::batches() const {
  return impl_->batches();
}

int64_t Loader::batch_size() const {
  return impl_->options.batch_size;
}

int64_t Loader::damaged() const {
  return impl_->damaged;
}

}  // namespace sgdph::lab::data
