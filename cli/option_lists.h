#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}

namespace sgdph::cli {

/// The seeds of --seeds: "3" means 1, 2 and 3; "4,5" these two.
std::vector<int64_t> seeds_from_text(const std::string& text);

/// --jobs: runs side by side.
void add_jobs_option(CLI::App& app, int64_t& jobs, const std::string& group);

}  // namespace sgdph::cli
