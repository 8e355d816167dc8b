#include "command.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/machine.h"
#include "base/terminal.h"
#include "base/text.h"
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
  int64_t rounds = 0;
  double seconds = kSeconds;
  int64_t threads = 0;
  std::string format = "text";
  CLI::Option* step_given = nullptr;
  CLI::Option* product_given = nullptr;
};

std::vector<int64_t> ranks_of(const std::string& text) {
  std::vector<int64_t> ranks;
  for (const auto& word : lab::words_between_commas(text)) {
    const auto count = lab::number_from<int64_t>(lab::trimmed(word));
    if (!count || *count < 1 || *count > kMostRanks) {
      lab::fail("--ranks: takes numbers from 1 to {} with commas between, got '{}'", kMostRanks, text);
    }
    ranks.push_back(*count);
  }
  lab::check_distinct("--ranks", ranks);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

int run(const ScaleCommand& command) {
  auto options = command.options;
  options.ranks = ranks_of(command.ranks);
  options.bucket_bytes = static_cast<int64_t>(command.bucket * 1024 * 1024);
  options.limit = {command.rounds, command.seconds, false};
  options.threads = command.threads == 0 ? lab::default_threads() : command.threads;
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
  lab::print("{}", lab::cost::present(report).as(lab::tables::table_formats().at(command.format)));
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
  app.add_option("--form", workload.form, "cifar: 32x32 images, 10 classes; imagenet: 224x224 images, 1000 classes")
      ->check(CLI::IsMember({"cifar", "imagenet"}).description(""))
      ->default_str(workload.form)
      ->type_name("{cifar,imagenet}");
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
  app.add_option("--rounds", c.rounds, "so many steps are timed, instead of --seconds")
      ->check(CLI::Range(1, 1000000).description(""))
      ->type_name("N");
  app.add_option("--seconds", c.seconds, "time for the timing of a step; five at least are timed")
      ->check(CLI::Range(0., 1e6).description(""))
      ->default_str(fmt::format("{:g}", c.seconds))
      ->type_name("NUMBER");
  app.add_option("--threads", c.threads, "threads of LibTorch; 0: one for each core")
      ->check(CLI::Range(0, 4096).description(""))
      ->default_str("0")
      ->type_name("N");
  app.add_option("--seed", workload.seed, "of weights and images")
      ->check(CLI::NonNegativeNumber.description(""))
      ->default_str("1")
      ->type_name("N");
  app.add_option("--format", c.format, "how to print the tables")
      ->check(CLI::IsMember(lab::tables::table_formats()).description(""))
      ->default_str("text")
      ->type_name("{text,markdown,csv,json}");
  return [command] { return run(*command); };
}

}  // namespace sgdph::cli
