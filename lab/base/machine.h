#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sgdph::lab {

std::string cpu_name();
std::string sgdph_version();
/// Now, in UTC: 2026-01-31T12:00:00Z.
std::string time_stamp();
/// The time of such a stamp in seconds since 1970; nothing if it is none.
std::optional<double> seconds_of_stamp(const std::string& stamp);
int64_t core_count();
/// The largest resident set of this process so far.
int64_t peak_memory_bytes();

/// Seconds on a clock that never jumps.
double seconds_now();

}  // namespace sgdph::lab
