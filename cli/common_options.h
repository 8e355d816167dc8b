#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tables/document.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class Option;
}  // namespace CLI

namespace sgdph::cli {

/// Options that several commands have.

/// Whole numbers with commas between, none twice; `option` is what messages call them.
std::vector<int64_t> numbers_of_list(const std::string& option, const std::string& text, int64_t low, int64_t high);
/// The seeds of --seeds: "3" means 1, 2 and 3; "4,5" these two.
std::vector<int64_t> seeds_from_text(const std::string& text);

/// --format: how tables are printed, by a name of `table_formats`.
CLI::Option* add_format_option(CLI::App& app, std::string& format, const std::string& help = "how to print the tables");
/// Prints it as the format of that name.
void print_as(const std::string& format, const lab::tables::Presentation& presentation);
/// --jobs: runs side by side.
void add_jobs_option(CLI::App& app, int64_t& jobs, const std::string& group);

/// A step of a network that is timed, whatever else a command says of it.
struct StepTiming {
  std::string form = "cifar";
  int64_t rounds = 0;
  double seconds = 0;
  int64_t threads = 0;
  int64_t seed = 1;

  int64_t used_threads() const;
};
/// --form --rounds --seconds --threads --seed; `what` the seconds are for.
void add_step_timing(CLI::App& app, StepTiming& step, const std::string& what);

}  // namespace sgdph::cli
