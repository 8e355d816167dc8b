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

}  // namespace sgdph::lab
