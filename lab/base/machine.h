#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sgdph::lab {

std::string cpu_name();
std::string sgdph_version();
int64_t core_count();
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
