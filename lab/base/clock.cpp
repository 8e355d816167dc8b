#include "base/clock.h"

#include <fmt/chrono.h>

#include <chrono>
#include <ctime>

namespace sgdph::lab {
namespace {

template <class Clock>
double seconds_of() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

std::function<double()> other_clock;

}  // namespace

ClockGuard::ClockGuard(std::function<double()> clock) {
  other_clock = std::move(clock);
}

ClockGuard::~ClockGuard() {
  other_clock = nullptr;
}

double seconds_now() {
  if (other_clock) return other_clock();
  return seconds_of<std::chrono::steady_clock>();
}

double seconds_since_1970() {
  return seconds_of<std::chrono::system_clock>();
}

std::string time_stamp() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::optional<double> seconds_of_stamp(const std::string& stamp) {
  std::tm time{};
  const char* end = ::strptime(stamp.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return static_cast<double>(timegm(&time));
}

}  // namespace sgdph::lab
