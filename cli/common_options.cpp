#include "common_options.h"

#include "base/error.h"
#include "base/machine.h"
#include "base/terminal.h"
#include "base/text.h"

#include <CLI/CLI.hpp>

namespace sgdph::cli {

std::vector<int64_t> numbers_of_list(const std::string& option, const std::string& text, int64_t low, int64_t high) {
  std::vector<int64_t> numbers;
  for (const auto& word : lab::words_between_commas(text)) {
    const auto number = lab::number_from<int64_t>(lab::trimmed(word));
    if (!number || *number < low || *number > high) {
      lab::fail("{}: takes numbers from {} to {} with commas between, got '{}'", option, low, high, text);
    }
    numbers.push_back(*number);
  }
  lab::check_distinct(option, numbers);
  return numbers;
}

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

CLI::Option* add_format_option(CLI::App& app, std::string& format, const std::string& help) {
  const auto& formats = lab::tables::table_formats();
  return app.add_option("--format", format, help)
      ->check(CLI::IsMember(formats).description(""))
      ->default_str(format)
      ->type_name("{text,markdown,csv,json}");
}

void print_as(const std::string& format, const lab::tables::Presentation& presentation) {
  lab::print("{}", presentation.as(lab::tables::table_formats().at(format)));
}

void add_jobs_option(CLI::App& app, int64_t& jobs, const std::string& group) {
  app.add_option("--jobs", jobs, "runs side by side, each with its share of the threads; their times are marked")
      ->check(CLI::Range(int64_t{1}, int64_t{256}).description(""))
      ->default_str("1")
      ->type_name("N")
      ->group(group);
}

int64_t StepTiming::used_threads() const {
  return threads == 0 ? lab::default_threads() : threads;
}

void add_step_timing(CLI::App& app, StepTiming& step, const std::string& what) {
  app.add_option("--form", step.form, "cifar: 32x32 images, 10 classes; imagenet: 224x224 images, 1000 classes")
      ->check(CLI::IsMember({"cifar", "imagenet"}).description(""))
      ->default_str(step.form)
      ->type_name("{cifar,imagenet}");
  app.add_option("--rounds", step.rounds, "so many steps of each kind are timed, instead of --seconds")
      ->check(CLI::Range(1, 1000000).description(""))
      ->type_name("N");
  app.add_option("--seconds", step.seconds, fmt::format("time for the timing of {}; five rounds at least", what))
      ->check(CLI::Range(0., 1e6).description(""))
      ->default_str(fmt::format("{}", step.seconds))
      ->type_name("NUMBER");
  app.add_option("--threads", step.threads, "threads of LibTorch; 0: one for each core")
      ->check(CLI::Range(0, 4096).description(""))
      ->default_str("0")
      ->type_name("N");
  app.add_option("--seed", step.seed, "of weights and images")
      ->check(CLI::NonNegativeNumber.description(""))
      ->default_str("1")
      ->type_name("N");
}

}  // namespace sgdph::cli
