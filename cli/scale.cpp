#include "command.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/terminal.h"
#include "common_options.h"
#include "cost/scale.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

namespace sgdph::cli {
namespace {

constexpr int64_t kMostRanks = 65536;
constexpr double kSeconds = 20;
constexpr double kProductOfStep = 2. / 3;  // as much as a backward pass

struct ScaleCommand {
  lab::cost::ScaleOptions options;
  std::string ranks = "1,2,4,8,16,32,64,128,256,512,1024";
  double bucket = 8;
  double step = 0, product = 0;
  StepTiming timing;
  std::string format = "text";
  CLI::Option* step_given = nullptr;
  CLI::Option* product_given = nullptr;
};

int run(const ScaleCommand& command) {
  auto options = command.options;
  options.ranks = numbers_of_list("--ranks", command.ranks, 1, kMostRanks);
  std::sort(options.ranks.begin(), options.ranks.end());
  options.workload.form = command.timing.form;
  options.workload.seed = command.timing.seed;
  options.bucket_bytes = static_cast<int64_t>(command.bucket * 1024 * 1024);
  options.limit = {command.timing.rounds, command.timing.seconds, false};
  options.threads = command.timing.used_threads();
  if (command.product_given->count() != 0 && command.step_given->count() == 0) {
    lab::fail("--product: goes with --step, the time of a step without it");
  }
  options.step_seconds = command.step / 1e3;
  options.product_seconds =
      command.product_given->count() != 0 ? command.product / 1e3 : kProductOfStep * options.step_seconds;
  const auto report = lab::cost::model_scale(options);
  if (report.rows.empty()) {
    lab::print(stderr, "sgdph: stopped before the step was measured\n");
    return lab::kInterrupted;
  }
  print_as(command.format, lab::cost::present(report));
  return 0;
}

}  // namespace

Action setup_scale(CLI::App& app) {
  auto command = std::make_shared<ScaleCommand>();
  auto& c = *command;
  auto& workload = c.options.workload;
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--model", workload.model, "the network, see 'sgdph list models'")
      ->default_str(workload.model)
      ->type_name("NAME");
  app.add_option("-b,--batch-size", workload.batch_size, "images of a step on each rank")
      ->check(CLI::Range(2, 65536).description(""))
      ->default_str(std::to_string(workload.batch_size))
      ->type_name("N");
  app.add_option("--ranks", c.ranks, "numbers of ranks, with commas between")
      ->default_str("1,2,4,...,1024")
      ->type_name("N,...");
  app.add_option("--bandwidth", c.options.link.gigabits, "of the link between ranks, Gb/s")
      ->check(CLI::Range(1e-3, 1e6).description(""))
      ->default_str(fmt::format("{:g}", c.options.link.gigabits))
      ->type_name("NUMBER");
  app.add_option("--hop", c.options.link.hop_microseconds, "time of a short message from rank to rank, us")
      ->check(CLI::Range(0., 1e6).description(""))
      ->default_str(fmt::format("{:g}", c.options.link.hop_microseconds))
      ->type_name("NUMBER");
  app.add_option("--bucket", c.bucket, "size of the buckets gradients travel in, MiB")
      ->check(CLI::Range(0.01, 1e5).description(""))
      ->default_str(fmt::format("{:g}", c.bucket))
      ->type_name("NUMBER");
  app.add_option("--epoch", c.options.epoch_images, "images of an epoch; by default those of CIFAR or ImageNet")
      ->check(CLI::PositiveNumber.description(""))
      ->type_name("N");
  c.step_given =
      app.add_option("--step", c.step, "time of a first-order step elsewhere, ms; by default it is measured here")
          ->check(CLI::Range(1e-3, 1e9).description(""))
          ->type_name("NUMBER");
  c.product_given =
      app.add_option("--product", c.product, "with --step, of a Hessian product, ms; by default two thirds of the step")
          ->check(CLI::Range(0., 1e9).description(""))
          ->type_name("NUMBER");
  c.timing.seconds = kSeconds;
  add_step_timing(app, c.timing, "a step");
  add_format_option(app, c.format);
  return [command] { return run(*command); };
}

}  // namespace sgdph::cli
