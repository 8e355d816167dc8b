#pragma once

#include <c10/core/Allocator.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cost/engine_run.h"
#include "train/compat.h"

namespace sgdph::lab::cost {

/// Counts the bytes LibTorch's CPU allocator has handed out and not taken back, and their peak. It sees what is
/// allocated in the thread (and by the backward passes) of a `HeldBytesGuard`; not what oneDNN and the C library keep.
class HeldBytes : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(
      void* pointer, int64_t size, train::TotalBytes allocated, train::TotalBytes reserved,
      c10::Device device) override;
  bool memoryProfilingEnabled() const override { return true; }

  int64_t now() const { return now_; }
  int64_t peak() const { return peak_; }
  void reset_peak() { peak_ = now_.load(); }

 private:
  std::atomic<int64_t> now_{0};
  std::atomic<int64_t> peak_{0};
};

/// While it lives, allocations of this thread are counted.
class HeldBytesGuard {
 public:
  HeldBytesGuard() : counter_(std::make_shared<HeldBytes>()), guard_(c10::DebugInfoKind::PROFILER_STATE, counter_) {}
  HeldBytes& counter() { return *counter_; }

 private:
  std::shared_ptr<HeldBytes> counter_;
  c10::DebugInfoGuard guard_;
};

/// The resident set of this process, from /proc.
int64_t resident_bytes();
/// Makes the peak of the resident set start anew, after what the C library keeps is given back; false if the system
/// does not allow it.
bool reset_peak_resident();
int64_t peak_resident_bytes();

/// The peak of one step.
struct StepMemory {
  int64_t position = 0;
  int64_t held = 0;
  int64_t resident = 0;  ///< above idle; 0 if the system does not say
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepMemory, position, held, resident)

struct EngineMemory {
  std::string engine;
  std::vector<StepMemory> steps;
  bool resident_known = true;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EngineMemory, engine, steps, resident_known)

/// Peaks of steps at the first, the middle and the last block, or at every one; parameters, gradients, state and the
/// batch included. For a process of its own: idle is LibTorch with its threads up, and nothing else.
EngineMemory measure_memory(const Engine& engine, const Workload& workload, bool every_position);

}  // namespace sgdph::lab::cost
