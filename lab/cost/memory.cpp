#include "cost/memory.h"

#include "tables/statistics.h"

#include <ATen/Functions.h>

#include <malloc.h>
#include <algorithm>
#include <fstream>
#include <string>

namespace sgdph::lab::cost {
namespace {

constexpr size_t kPlaces = 3;  // the first, the last and one between

/// A line of /proc/self/status, in bytes; 0 if it is not there.
int64_t status_bytes(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    int64_t kilobytes = 0;
    if (word == key + ":" && in >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

/// Brings LibTorch's threads and oneDNN up, which is no engine's cost.
void warm_up_libtorch() {
  const auto images = at::ones({4, 16, 32, 32});
  at::conv2d(images, at::ones({16, 16, 3, 3})).sum().item<float>();
  at::mm(at::ones({256, 256}), at::ones({256, 256})).sum().item<float>();
}

std::vector<int64_t> positions_of(const EngineRun& run, bool every) {
  const auto count = static_cast<size_t>(std::max<int64_t>(1, run.positions()));
  const auto places = tables::evenly_spread(count, every ? count : kPlaces);
  return {places.begin(), places.end()};
}

}  // namespace

void HeldBytes::reportMemoryUsage(
    void* /*pointer*/, int64_t size, train::TotalBytes, train::TotalBytes, c10::Device device) {
  if (!device.is_cpu()) return;
  const auto now = now_ += size;
  auto peak = peak_.load();
  while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
  }
}

int64_t resident_bytes() {
  return status_bytes("VmRSS");
}

bool reset_peak_resident() {
  ::malloc_trim(0);
  std::ofstream out("/proc/self/clear_refs");
  out << "5" << std::flush;
  return out.good();
}

int64_t peak_resident_bytes() {
  return status_bytes("VmHWM");
}

EngineMemory measure_memory(const Engine& engine, const Workload& workload, bool every_position) {
  warm_up_libtorch();
  EngineMemory memory;
  memory.engine = engine.name;
  memory.resident_known = reset_peak_resident();
  const auto idle = resident_bytes();
  HeldBytesGuard guard;
  EngineRun run(engine, workload, TimedBatch(workload));
  // The first step makes gradients and state.
  run.prepare(run.positions() - 1);
  run.step();
  for (const auto position : positions_of(run, every_position)) {
    run.prepare(position);
    memory.resident_known = reset_peak_resident() && memory.resident_known;
    guard.counter().reset_peak();
    run.step();
    StepMemory step;
    step.position = position;
    step.held = guard.counter().peak();
    if (memory.resident_known) step.resident = std::max<int64_t>(0, peak_resident_bytes() - idle);
    memory.steps.push_back(step);
  }
  return memory;
}

}  // namespace sgdph::lab::cost
