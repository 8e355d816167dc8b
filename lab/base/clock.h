#pragma once

#include <functional>
#include <optional>
#include <string>

namespace sgdph::lab {

/// Seconds on a clock that never jumps, for durations.
double seconds_now();
/// Puts another clock in the place of seconds_now() while it lives: for tests.
class ClockGuard {
 public:
  explicit ClockGuard(std::function<double()> clock);
  ~ClockGuard();
  ClockGuard(const ClockGuard&) = delete;
  ClockGuard& operator=(const ClockGuard&) = delete;
};

/// Seconds since 1970, by the machine's clock.
double seconds_since_1970();

/// Now, in UTC: 2026-01-31T12:00:00Z.
std::string time_stamp();
/// The time of such a stamp in seconds since 1970; nothing if it is none.
std::optional<double> seconds_of_stamp(const std::string& stamp);

}  // namespace sgdph::lab
