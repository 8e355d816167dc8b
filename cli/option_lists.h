#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sgdph::cli {

/// The seeds of --seeds: "3" means 1, 2 and 3; "4,5" these two.
std::vector<int64_t> seeds_from_text(const std::string& text);

}  // namespace sgdph::cli
