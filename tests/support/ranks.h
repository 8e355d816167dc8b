#pragma once

#include <torch/torch.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sgdph::test {

/// Processes that average tensors, as threads. A rank that averages fewer times than another would wait for ever; here
/// the others go on when it has finished, and `agreed` is false.
class Ranks {
 public:
  explicit Ranks(size_t count) : count_(count), left_(count) {}

  /// Runs all ranks to their end.
  void run(const std::function<void(size_t rank)>& body) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < count_; ++rank) {
      threads.emplace_back([this, rank, &body] {
        body(rank);
        const std::lock_guard lock(mutex_);
        --left_;
        if (arrived_ != 0) agreed = false;
        changed_.notify_all();
      });
    }
    for (auto& thread : threads) thread.join();
  }

  /// The mean of what all ranks hand in. Sums in the order of arrival, which for two makes no difference.
  at::Tensor average(const at::Tensor& tensor) {
    std::unique_lock lock(mutex_);
    if (arrived_ != 0 && sum_.sizes() != tensor.sizes()) agreed = false;
    sum_ = arrived_ == 0 ? tensor.clone() : (sum_.sizes() == tensor.sizes() ? sum_ + tensor : tensor);
    ++collectives;
    if (++arrived_ == count_) {
      mean_ = sum_ / static_cast<double>(count_);
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
      return mean_.clone();
    }
    const auto round = round_;
    changed_.wait(lock, [&] { return round_ != round || left_ < count_; });
    return round_ != round ? mean_.clone() : tensor;
  }

  bool agreed = true;   ///< all handed in tensors of the same size, equally often
  int collectives = 0;  ///< calls, over all ranks

 private:
  size_t count_, left_;
  size_t arrived_ = 0;
  int64_t round_ = 0;
  at::Tensor sum_, mean_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace sgdph::test
