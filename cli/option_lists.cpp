#include "option_lists.h"

#include "base/error.h"
#include "base/text.h"

#include <CLI/CLI.hpp>

namespace sgdph::cli {

std::vector<int64_t> seeds_from_text(const std::string& text) {
  std::vector<int64_t> seeds;
  for (const auto& word : lab::words_of_list(text)) {
    const auto seed = lab::number_from<int64_t>(word);
    if (!seed || *seed < 0) lab::fail("--seeds: takes how many, or seeds with commas between, got '{}'", text);
    seeds.push_back(*seed);
  }
  lab::check_distinct("--seeds", seeds);
  if (text.find(',') != std::string::npos) return seeds;
  const auto count = seeds.front();
  if (count < 1 || count > 1000) lab::fail("--seeds: takes a number of seeds from 1 to 1000, got '{}'", text);
  seeds.clear();
  for (int64_t seed = 1; seed <= count; ++seed) seeds.push_back(seed);
  return seeds;
}

void add_jobs_option(CLI::App& app, int64_t& jobs, const std::string& group) {
  app.add_option("--jobs", jobs, "runs side by side, each with its share of the threads; their times are marked")
      ->check(CLI::Range(int64_t{1}, int64_t{256}).description(""))
      ->default_str("1")
      ->type_name("N")
      ->group(group);
}

}  // namespace sgdph::cli
