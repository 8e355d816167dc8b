#include "base/machine.h"

#include <sgdph/version.h>

#include <fmt/chrono.h>

#include <sys/resource.h>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <sstream>
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

std::string time_stamp() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::optional<double> seconds_of_stamp(const std::string& stamp) {
  std::tm time{};
  std::istringstream in(stamp);
  in >> std::get_time(&time, "%Y-%m-%dT%H:%M:%SZ");
  if (in.fail()) return std::nullopt;
  return static_cast<double>(timegm(&time));
}

int64_t core_count() {
  return std::max<int64_t>(1, std::thread::hardware_concurrency());
}

int64_t peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace sgdph::lab
