#pragma once

#include <cstdint>
#include <string>

namespace sgdph::lab {

std::string cpu_name();
std::string sgdph_version();
int64_t core_count();
/// The largest resident set of this process so far.
int64_t peak_memory_bytes();

}  // namespace sgdph::lab
