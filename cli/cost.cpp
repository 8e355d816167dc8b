#include "command.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/terminal.h"
#include "base/text.h"
#include "common_options.h"
#include "cost/cost.h"
#include "cost/measurement.h"
#include "cost/report.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <memory>

namespace sgdph::cli {
namespace {

// What an unset --seconds means: so that a run with all defaults takes about a minute.
constexpr double kSeconds = 30;
constexpr int64_t kLargestBatch = 65536;

struct CostCommand {
  std::string models = "resnet18";
  std::string batch_sizes = "32";
  std::string engines = "default";
  StepTiming timing;
  bool sweep = false;
  bool positions = false;
  bool memory = true;
  std::string output_dir;
  std::string format = "text";
  std::string task;
  CLI::Option* models_given = nullptr;
  CLI::Option* batch_sizes_given = nullptr;
};

lab::cost::CostOptions cost_options(const CostCommand& command) {
  lab::cost::CostOptions options;
  options.engines = lab::cost::engines_from_text(command.engines);
  options.models = lab::words_of_list(command.models);
  lab::check_distinct("--model", options.models);
  options.batch_sizes = numbers_of_list("--batch-size", command.batch_sizes, 2, kLargestBatch);
  if (command.sweep && command.models_given->count() == 0) options.models = lab::cost::sweep_models();
  if (command.sweep && command.batch_sizes_given->count() == 0) options.batch_sizes = lab::cost::sweep_batch_sizes();
  options.form = command.timing.form;
  options.limit = {command.timing.rounds, command.timing.seconds, command.positions};
  options.memory = command.memory;
  options.threads = command.timing.used_threads();
  options.seed = command.timing.seed;
  lab::cost::check_cost_options(options);
  return options;
}

int run(const CostCommand& command) {
  if (!command.task.empty()) return lab::cost::do_measurement(command.task);
  const auto options = cost_options(command);
  if (!command.output_dir.empty()) lab::make_writable_folder(command.output_dir);
  const auto [report, stopped] = lab::cost::measure_cost(options);
  if (!report.rows.empty()) {
    if (!command.output_dir.empty()) lab::cost::write_cost_report(report, command.output_dir, command.positions);
    print_as(command.format, lab::cost::present(report, command.positions));
  }
  if (stopped) lab::print(stderr, "sgdph: stopped; the figures are those measured until then\n");
  return stopped ? lab::kInterrupted : 0;
}

}  // namespace

Action setup_cost(CLI::App& app) {
  auto command = std::make_shared<CostCommand>();
  auto& c = *command;
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  c.models_given = app.add_option("--model", c.models, "networks with commas between, see 'sgdph list models'")
                       ->default_str(c.models)
                       ->type_name("NAME,...");
  c.batch_sizes_given = app.add_option("-b,--batch-size", c.batch_sizes, "batch sizes with commas between")
                            ->default_str(c.batch_sizes)
                            ->type_name("N,...");
  app.add_option(
         "--engines", c.engines,
         fmt::format(
             "ways to do a step, with commas between, or all, or default (what a minute allows); there are {}",
             fmt::join(lab::cost::engine_names(), ", ")))
      ->default_str(c.engines)
      ->type_name("NAME,...");
  app.add_flag(
      "--sweep", c.sweep, "vgg11, vgg19, resnet18, resnet50 at batch sizes 8 to 256, where not said otherwise");
  c.timing.seconds = kSeconds;
  add_step_timing(app, c.timing, "each network and batch size");
  app.add_flag("--positions", c.positions, "figures for every block; takes a round for each");
  app.add_flag("--memory,!--no-memory", c.memory, "measure peak memory too, which is the default");
  app.add_option("--output-dir", c.output_dir, "write cost.json, .md, .csv and .svg there; by default nothing")
      ->type_name("DIR");
  add_format_option(app, c.format);
  app.add_option("--task", c.task, "a measurement of the program itself")->group("");
  return [command] { return run(*command); };
}

}  // namespace sgdph::cli
