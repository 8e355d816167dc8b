#include "base/machine.h"

#include <sgdph/version.h>

#include <fmt/format.h>

#include <sys/resource.h>
#include <algorithm>
#include <fstream>
#include <thread>

namespace sgdph::lab {

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string sgdph_version() {
  return fmt::format("{}.{}.{}", SGDPH_VERSION_MAJOR, SGDPH_VERSION_MINOR, SGDPH_VERSION_PATCH);
}

int64_t core_count() {
  return std::max<int64_t>(1, std::thread::hardware_concurrency());
}

int64_t peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

std::optional<double> CoreWatch::waited() {
  // Nanoseconds on a core and waiting for one, and how many times it had one.
  std::ifstream in("/proc/thread-self/schedstat");
  double running = 0;
  double waiting = 0;
  if (!(in >> running >> waiting)) return std::nullopt;
  return waiting * 1e-9;
}

CoreWatch::CoreWatch(double now, Waited waited) : waited_(waited), looked_(now), before_(waited()) {}

std::optional<double> CoreWatch::slowed(double now) {
  constexpr double kBetweenLooks = 20;  // seconds
  constexpr double kWorthAWord = 0.25;
  if (!before_ || now - looked_ < kBetweenLooks) return std::nullopt;
  const auto waited = waited_();
  const auto part = (waited.value_or(0) - *before_) / (now - looked_);
  before_ = waited;
  looked_ = now;
  return part > kWorthAWord ? std::optional(part) : std::nullopt;
}

}  // namespace sgdph::lab
