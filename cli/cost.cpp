#include "command.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/machine.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cost/cost.h"
#include "cost/measurement.h"
#include "cost/report.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace sgdph::cli {
namespace {

// What an unset --seconds means: so that a run with all defaults takes about a minute.
constexpr double kSeconds = 30;
constexpr int64_t kLargestBatch = 65536;

struct CostCommand {
  std::string models = "resnet18";
  std::string form = "cifar";
  std::string batch_sizes = "32";
  std::string engines = "default";
  int64_t rounds = 0;
  double seconds = kSeconds;
  int64_t threads = 0;
  int64_t seed = 1;
  bool sweep = false;
  bool positions = false;
  bool memory = true;
  std::string output_dir;
  std::string format = "text";
  std::string task;
  CLI::Option* models_given = nullptr;
  CLI::Option* batch_sizes_given = nullptr;
};

std::vector<int64_t> batch_sizes_of(const std::string& text) {
  std::vector<int64_t> sizes;
  for (const auto& word : lab::words_between_commas(text)) {
    const auto size = lab::number_from<int64_t>(lab::trimmed(word));
    if (!size || *size < 2 || *size > kLargestBatch) {
      lab::fail("--batch-size: takes numbers from 2 to {} with commas between, got '{}'", kLargestBatch, text);
    }
    sizes.push_back(*size);
  }
  lab::check_distinct("--batch-size", sizes);
  return sizes;
}

lab::cost::CostOptions cost_options(const CostCommand& command) {
  lab::cost::CostOptions options;
  options.engines = lab::cost::engines_from_text(command.engines);
  options.models = lab::words_of_list(command.models);
  lab::check_distinct("--model", options.models);
  options.batch_sizes = batch_sizes_of(command.batch_sizes);
  if (command.sweep && command.models_given->count() == 0) options.models = lab::cost::sweep_models();
  if (command.sweep && command.batch_sizes_given->count() == 0) options.batch_sizes = lab::cost::sweep_batch_sizes();
  options.form = command.form;
  options.limit = {command.rounds, command.seconds, command.positions};
  options.memory = command.memory;
  options.threads = command.threads == 0 ? lab::default_threads() : command.threads;
  options.seed = command.seed;
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
    lab::print("{}", lab::cost::present(report, command.positions).as(lab::tables::table_formats().at(command.format)));
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
  app.add_option("--form", c.form, "cifar: 32x32 images, 10 classes; imagenet: 224x224 images, 1000 classes")
      ->check(CLI::IsMember({"cifar", "imagenet"}).description(""))
      ->default_str(c.form)
      ->type_name("{cifar,imagenet}");
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
  app.add_option("--rounds", c.rounds, "so many steps of each engine, instead of --seconds")
      ->check(CLI::Range(1, 1000000).description(""))
      ->type_name("N");
  app.add_option("--seconds", c.seconds, "time for the timing of each network and batch size; five rounds at least")
      ->check(CLI::Range(0., 1e6).description(""))
      ->default_str(fmt::format("{}", c.seconds))
      ->type_name("NUMBER");
  app.add_flag("--positions", c.positions, "figures for every block; takes a round for each");
  app.add_flag("--memory,!--no-memory", c.memory, "measure peak memory too, which is the default");
  app.add_option("--threads", c.threads, "threads of LibTorch; 0: one for each core")
      ->check(CLI::Range(0, 4096).description(""))
      ->default_str("0")
      ->type_name("N");
  app.add_option("--seed", c.seed, "of weights and images")
      ->check(CLI::NonNegativeNumber.description(""))
      ->default_str("1")
      ->type_name("N");
  app.add_option("--output-dir", c.output_dir, "write cost.json, .md, .csv and .svg there; by default nothing")
      ->type_name("DIR");
  app.add_option("--format", c.format, "how to print the table")
      ->check(CLI::IsMember(lab::tables::table_formats()).description(""))
      ->default_str("text")
      ->type_name("{text,markdown,csv,json}");
  app.add_option("--task", c.task, "a measurement of the program itself")->group("");
  return [command] { return run(*command); };
}

}  // namespace sgdph::cli
