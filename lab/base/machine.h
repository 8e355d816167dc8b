#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace sgdph::lab {

std::string cpu_name();
/// What this machine calls itself.
std::string own_host();
std::string sgdph_version();
/// Cores that this process may use: those it is bound to (taskset, a batch system), and no more than a container's
/// share of time is worth.
int64_t core_count();
/// Threads of a run that does not say how many: the cores, or fewer by OMP_NUM_THREADS.
int64_t default_threads();
/// The share of time of the process's control groups (cpu.max, or cpu.cfs_quota_us of the first version), in cores,
/// rounded up; nothing if there is no limit.
std::optional<int64_t> group_core_limit(
    const std::filesystem::path& own_groups = "/proc/self/cgroup",
    const std::filesystem::path& root = "/sys/fs/cgroup");
/// The largest resident set of this process so far.
int64_t peak_memory_bytes();

/// Tells whether a thread is slowed by more threads, its own program's or others', than there are cores.
class CoreWatch {
 public:
  /// Seconds that the calling thread has been able to run so far and had no core; nothing where the system does not
  /// say.
  using Waited = std::optional<double> (*)();
  static std::optional<double> waited();

  explicit CoreWatch(double now, Waited waited = CoreWatch::waited);
  /// The part of the time since the last look that was spent waiting, if it is worth a word. Looks once in a while
  /// only, long enough for a build or a download next door to pass.
  std::optional<double> slowed(double now);

 private:
  Waited waited_;
  double looked_;
  std::optional<double> before_;
};

}  // namespace sgdph::lab
