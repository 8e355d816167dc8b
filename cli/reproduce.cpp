#include "command.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/names.h"
#include "base/terminal.h"
#include "base/text.h"
#include "common_options.h"
#include "data/datasets.h"
#include "lead_ranks.h"
#include "reproduce/reproduce.h"
#include "settings_options.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

namespace sgdph::cli {
namespace {

struct ReproduceCommand {
  SettingsOptions settings;
  std::string name;
  std::string scale = "desk";
  std::string seeds;
  std::vector<std::string> only;
  std::vector<std::string> data_paths;
  std::string output_dir;
  std::string records;
  std::string format = "text";
  bool dry_run = false;
  int64_t jobs = 1;
};

/// "model=resnet18,vgg11": axis and values.
void add_choice(lab::reproduce::Selection& selection, const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    lab::fail("--only: takes AXIS=VALUE,VALUE..., got '{}'", text);
  }
  auto& values = selection.only[text.substr(0, equals)];
  for (const auto& value : lab::words_of_list(text.substr(equals + 1))) values.push_back(value);
}

std::vector<std::string> datasets_of(
    const lab::reproduce::Experiment& experiment, const lab::reproduce::Selection& selection) {
  std::vector<std::string> names;
  for (const auto& cell : lab::reproduce::cells_of(experiment, selection)) {
    if (std::find(names.begin(), names.end(), cell.settings.dataset) == names.end()) {
      names.push_back(cell.settings.dataset);
    }
  }
  return names;
}

/// "cifar100=DIR", or a folder alone if the experiment has one data set.
void add_data_path(lab::reproduce::ReproduceOptions& options, const std::string& text) {
  auto& paths = options.selection.data_paths;
  const auto equals = text.find('=');
  for (const auto& info : lab::data::datasets()) {
    if (equals == std::string::npos || text.substr(0, equals) != info.name) continue;
    auto whole = options.selection;  // a path for a part that is not selected does no harm
    whole.only.clear();
    lab::check_name(
        fmt::format("data set of {} (--data-path)", options.experiment.name), info.name,
        datasets_of(options.experiment, whole));
    paths[info.name] = text.substr(equals + 1);
    return;
  }
  const auto names = datasets_of(options.experiment, options.selection);
  if (names.size() > 1) {
    lab::fail(
        "--data-path: {} has the data sets {}; say which with NAME={}", options.experiment.name, fmt::join(names, ", "),
        text);
  }
  paths[names.front()] = text;
}

lab::reproduce::ReproduceOptions options_of_command(const ReproduceCommand& command) {
  lab::reproduce::ReproduceOptions options;
  options.experiment = lab::reproduce::find_experiment(command.name);
  auto& selection = options.selection;
  selection.scale = command.scale == "full" ? lab::reproduce::Scale::Full : lab::reproduce::Scale::Desk;
  if (!command.seeds.empty()) selection.seeds = seeds_from_text(command.seeds);
  selection.options = command.settings.given();
  for (const auto& text : command.only) add_choice(selection, text);
  for (const auto& text : command.data_paths) add_data_path(options, text);
  options.output_dir =
      command.output_dir.empty() ? fmt::format("runs/reproduce-{}", command.scale) : command.output_dir;
  options.jobs = command.jobs;
  return options;
}

/// The tables of records that are there, without training.
int run_from_records(const ReproduceCommand& command, const lab::reproduce::ReproduceOptions& options) {
  const auto result = lab::reproduce::result_from_records(options, command.records);
  if (!command.output_dir.empty()) {
    lab::make_writable_folder(options.output_dir);
    lab::reproduce::write_result(result, options);
  }
  print_as(command.format, lab::reproduce::present(result));
  return 0;
}

int run_study(const ReproduceCommand& command, const lab::reproduce::ReproduceOptions& options) {
  const auto plan = lab::reproduce::plan_experiment(options, command.dry_run);
  if (lab::interrupted()) return lab::kInterrupted;  // while steps were timed; nothing is written yet
  lab::print(command.dry_run ? stdout : stderr, "{}", lab::reproduce::plan_text(options, plan));
  if (command.dry_run) return 0;
  const auto code = lab::reproduce::run_experiment(options, plan);
  print_as(command.format, lab::reproduce::present(lab::reproduce::result_of(options)));
  if (command.format == "text") {
    lab::print("* best here; also in {}/{}.md, .csv, .json\n", options.output_dir.string(), options.experiment.name);
  }
  if (code == lab::kInterrupted) lab::print(stderr, "sgdph: stopped; the same command continues where it was\n");
  return code;
}

int run(const ReproduceCommand& command) {
  auto options = options_of_command(command);
  if (!command.records.empty()) return run_from_records(command, options);
  if (command.dry_run) return run_study(command, options);
  const lab::dist::Facts facts{
      {"the command", "reproduce " + command.name},
      {"--scale", command.scale},
      {"--seeds", command.seeds},
      {"--only", command.only}};
  const SharedStudy shared{{{}, options.selection.options}, facts, command.jobs};
  return lead_ranks(shared, options.selection.options, [&](const lab::RunProcess& run) {
    options.run = run;
    return run_study(command, options);
  });
}

}  // namespace

Action setup_reproduce(CLI::App& app) {
  auto command = std::make_shared<ReproduceCommand>();
  auto& c = *command;
  const auto* group = "Experiment";
  app.add_option("name", c.name, "experiment, see 'sgdph list experiments'; or a file of one's own, NAME.toml")
      ->required()
      ->type_name(fmt::format("{{{}}}", fmt::join(lab::reproduce::experiment_names(), ",")));
  app.add_option("--scale", c.scale, "full: as in the paper; desk: reduced to fit two CPU cores")
      ->check(CLI::IsMember({"full", "desk"}).description(""))
      ->default_str(c.scale)
      ->type_name("{full,desk}")
      ->group(group);
  app.add_option(
         "--seeds", c.seeds,
         "how many seeds (3: 1,2,3), or the seeds themselves (4,5); by default as the experiment says")
      ->type_name("N")
      ->group(group);
  app.add_option("--only", c.only, "a part of the grid, such as model=resnet18,vgg11; may be given for several axes")
      ->allow_extra_args(false)
      ->type_name("AXIS=VALUE,...")
      ->group(group);
  app.add_option("--data-path", c.data_paths, "folder of the data set, or NAME=DIR for each where there are several")
      ->allow_extra_args(false)
      ->type_name("[NAME=]DIR")
      ->group(group);
  app.add_flag("--dry-run", c.dry_run, "show the plan and an estimate of the time, and write nothing")->group(group);
  app.add_option(
         "--records", c.records,
         "tables of the runs in this folder or file of 'sgdph report --pack', without training; also written to "
         "--output-dir if it is given")
      ->type_name("PATH")
      ->excludes("--dry-run", "--seeds", "--data-path")
      ->group(group);
  app.add_option("--output-dir", c.output_dir, "folder of runs and tables; by default runs/reproduce-SCALE")
      ->type_name("DIR")
      ->group(group);
  add_jobs_option(app, c.jobs, group);
  add_format_option(app, c.format, "how to print the result; all four are written to the folder")->group(group);
  c.settings.add_fields(app, [](const lab::settings::Field& field) { return field.reproduces; });
  return [command] { return run(*command); };
}

}  // namespace sgdph::cli
