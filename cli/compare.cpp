#include "command.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/terminal.h"
#include "base/text.h"
#include "common_options.h"
#include "lead_ranks.h"
#include "optimizers/options.h"
#include "settings_options.h"
#include "study/compare.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

namespace sgdph::cli {
namespace {

struct CompareCommand {
  SettingsOptions settings;
  std::string optimizers = "all";
  std::string seeds = "1";
  std::string output_dir;
  std::string format = "text";
  int64_t jobs = 1;
};

std::vector<std::string> chosen_optimizers(const std::string& text) {
  if (text == "all") return lab::optimizers::optimizer_names();
  auto chosen = lab::words_of_list(text);
  for (const auto& name : chosen) lab::optimizers::optimizer_entry(name);
  lab::check_distinct("--opts", chosen);
  return chosen;
}

int run_study(const CompareCommand& command, lab::study::CompareOptions options) {
  for (const auto* key : {"opt", "seed"}) {
    if (options.sources.options.count(key) != 0) lab::fail("--{}: compare takes --{}s", key, key);
  }
  options.optimizers = chosen_optimizers(command.optimizers);
  options.seeds = seeds_from_text(command.seeds);
  // Names are checked with the first optimizer, before a folder is named after them.
  auto sources = options.sources;
  sources.options["opt"] = {options.optimizers.front(), "--opts"};
  const auto settings = lab::settings::combine(sources);
  options.output_dir = command.output_dir.empty() ? fmt::format("runs/compare-{}-{}", settings.dataset, settings.model)
                                                  : command.output_dir;
  const auto result = lab::study::run_comparison(options);
  const auto plan = lab::study::plan_comparison(options);
  const auto rows = lab::study::summarise({plan.begin(), plan.end()});
  print_as(command.format, lab::study::present(rows));
  if (command.format == "text") {
    const bool starred = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.best; });
    lab::print(
        "{}also in {}/summary.md, .csv, .json\n",
        starred ? "* highest mean after the last epoch, or within the noise of it; " : "", options.output_dir.string());
  }
  if (result == lab::kInterrupted) lab::print(stderr, "sgdph: stopped; the same command continues where it was\n");
  return result;
}

int run(const CompareCommand& command) {
  lab::study::CompareOptions options;
  options.sources = command.settings.sources();
  options.jobs = command.jobs;
  const lab::dist::Facts facts{{"the command", "compare"}, {"--opts", command.optimizers}, {"--seeds", command.seeds}};
  return lead_ranks({options.sources, facts, command.jobs}, options.sources.options, [&](const lab::RunProcess& run) {
    options.run = run;
    return run_study(command, options);
  });
}

}  // namespace

Action setup_compare(CLI::App& app) {
  auto command = std::make_shared<CompareCommand>();
  const auto* group = "Comparison";
  app.add_option("--opts", command->optimizers, "optimizers with commas between, or all")
      ->default_str("all")
      ->type_name("NAME,...")
      ->group(group);
  app.add_option(
         "--seeds", command->seeds, "how many seeds (3: 1,2,3), or the seeds themselves (4,5; 7, is the one seed 7)")
      ->default_str("1")
      ->type_name("N")
      ->group(group);
  app.add_option("--output-dir", command->output_dir, "folder of the runs; by default runs/compare-DATASET-MODEL")
      ->type_name("DIR")
      ->group(group);
  add_format_option(app, command->format, "how to print the table; all four are written to the folder")->group(group);
  add_jobs_option(app, command->jobs, group);
  command->settings.add_to(app);
  return [command] { return run(*command); };
}

}  // namespace sgdph::cli
