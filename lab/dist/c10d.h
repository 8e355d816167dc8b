#pragma once

// The only door to c10d, whose classes differ between versions of LibTorch. A build without Gloo's headers has
// no_c10d.cpp behind it, which says what is missing.

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/environment.h"

namespace sgdph::lab::dist {

using Milliseconds = std::chrono::milliseconds;

/// A UserError if this build cannot do what is below.
void check_built_for(const Environment& environment);

/// Short texts that all ranks see, kept by rank 0 or by torchrun's agent. Errors are exceptions with c10d's words. An
/// object serves one thread.
class Store {
 public:
  Store(const Environment& environment, Milliseconds timeout);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void set(const std::string& key, const std::string& text);
  /// Nothing if nobody has set it yet.
  std::optional<std::string> get(const std::string& key);
  /// The sum so far, with `amount` in it.
  int64_t add(const std::string& key, int64_t amount);

 private:
  friend class Collectives;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Waits for what was begun; throws if it failed.
using Wait = std::function<void()>;

/// Gloo on the CPU, NCCL on CUDA. All ranks must begin the same ones in the same order.
class Collectives {
 public:
  /// Connects all ranks with each other. `address`: where this one listens; empty: on the interfaces.
  Collectives(
      Store& store, const Environment& environment, bool cuda, const std::string& address,
      const std::vector<std::string>& interfaces, Milliseconds timeout);
  ~Collectives();
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  /// The sum over ranks, in place; the tensor must be left alone until it was waited for.
  Wait begin_sum(at::Tensor& tensor);
  Wait begin_broadcast(at::Tensor& tensor);

  /// After an error: nothing is waited for any more, whatever is under way.
  void let_go();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sgdph::lab::dist
