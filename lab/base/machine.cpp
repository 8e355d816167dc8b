#include "base/machine.h"

#include <sgdph/version.h>

#include <fmt/format.h>

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <thread>

#include "base/text.h"

namespace sgdph::lab {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

int64_t bound_cores() {
  const auto all = std::max<int64_t>(1, std::thread::hardware_concurrency());
  // OpenMP binds this very thread, and to one core; what the process had before is not known any more.
  const auto bind = variable("OMP_PROC_BIND");
  if (!variable("GOMP_CPU_AFFINITY").empty() || !variable("OMP_PLACES").empty() || (!bind.empty() && bind != "false")) {
    return all;
  }
  cpu_set_t own;
  CPU_ZERO(&own);
  if (::sched_getaffinity(0, sizeof own, &own) != 0) return all;  // more cores than it has bits
  return std::max<int64_t>(1, CPU_COUNT(&own));
}

/// What a file says first, as far as it is a number of microseconds.
std::optional<double> microseconds_in(const fs::path& file) {
  std::ifstream in(file);
  double value = 0;
  return in >> value && value > 0 ? std::optional(value) : std::nullopt;
}

/// Of one group, in cores.
std::optional<double> limit_of_group(const fs::path& group) {
  std::ifstream in(group / "cpu.max");
  double quota = 0;
  double period = 0;
  if (in >> quota >> period && quota > 0 && period > 0) return quota / period;
  const auto first_quota = microseconds_in(group / "cpu.cfs_quota_us");
  const auto first_period = microseconds_in(group / "cpu.cfs_period_us");
  return first_quota && first_period ? std::optional(*first_quota / *first_period) : std::nullopt;
}

/// The smallest of a group and those above it. In a container its own group is the root of what can be seen.
std::optional<double> limit_along(const fs::path& root, const std::string& group) {
  auto smallest = limit_of_group(root);
  auto at = root;
  for (const auto& part : fs::path(group).relative_path()) {
    at /= part;
    const auto limit = limit_of_group(at);
    if (limit && (!smallest || *limit < *smallest)) smallest = limit;
  }
  return smallest;
}

}  // namespace

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string own_host() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string sgdph_version() {
  return fmt::format("{}.{}.{}", SGDPH_VERSION_MAJOR, SGDPH_VERSION_MINOR, SGDPH_VERSION_PATCH);
}

std::optional<int64_t> group_core_limit(const fs::path& own_groups, const fs::path& root) {
  std::optional<double> smallest;
  std::ifstream in(own_groups);
  // Lines of NUMBER:CONTROLLERS:PATH; the second version has one, without controllers.
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const auto names = words_between_commas(controllers);
    if (!controllers.empty() && std::find(names.begin(), names.end(), "cpu") == names.end()) continue;
    for (const auto& place : {root / controllers, root / "cpu", root / "unified"}) {
      if (controllers.empty() && place == root / "cpu") continue;
      if (!controllers.empty() && place == root / "unified") continue;
      const auto limit = limit_along(place, line.substr(second + 1));
      if (limit && (!smallest || *limit < *smallest)) smallest = limit;
    }
  }
  if (!smallest) return std::nullopt;
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(*smallest)));
}

int64_t core_count() {
  const auto bound = bound_cores();
  return std::min(bound, group_core_limit().value_or(bound));
}

int64_t default_threads() {
  // A list is for nested regions.
  const auto wanted = number_from<int64_t>(words_between_commas(variable("OMP_NUM_THREADS")).front());
  return wanted && *wanted > 0 ? std::min(*wanted, core_count()) : core_count();
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
