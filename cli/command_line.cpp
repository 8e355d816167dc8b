#include "command.h"

#include "base/machine.h"
#include "train/libtorch.h"

#include <CLI/CLI.hpp>

#include <iterator>

namespace sgdph::cli {

namespace {

constexpr bool kComputes = true;

constexpr Command kTable[] = {
    {"train", "train a network: one data set, one optimizer, one seed", setup_train, kComputes},
    {"eval", "accuracy and loss of a checkpoint", setup_eval, kComputes},
    {"compare", "several optimizers and seeds on one task, with a table", setup_compare, kComputes},
    {"reproduce", "a table or figure of the paper, with its figures beside ours", setup_reproduce, kComputes},
    {"cost", "time and peak memory of a step, relative to SGDM", setup_cost, kComputes},
    {"scale", "what 1 to 1024 ranks would do, by a model with a step of this machine in it", setup_scale, kComputes},
    {"inspect", "Hessian blocks by brute force: are they diagonal, and what do the probes see", setup_inspect,
     kComputes},
    {"report", "run folders to one page: curves, tables, cost, settings", setup_report},
    {"data", "list, fetch and verify data sets", setup_data},
    {"list", "list models, norms, optimizers, data sets, recipes or experiments", setup_list},
    {"completion", "print a completion script for a shell", setup_completion},
    {"man", "print the manual page", setup_man},
};

}  // namespace

CommandTable commands() {
  return {std::begin(kTable), std::end(kTable)};
}

CommandLine make_command_line() {
  CommandLine line;
  line.app = std::make_shared<CLI::App>(
      "sgdph: train, compare and measure with SGD with Partial Hessian and its rivals", "sgdph");
  auto& app = *line.app;
  app.set_version_flag(
      "--version", "sgdph " + lab::sgdph_version() + " (LibTorch " + lab::train::libtorch_version() + ")");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  for (const auto& command : commands()) {
    auto* sub = app.add_subcommand(command.name, command.summary);
    line.actions[sub] = command.setup(*sub);
  }
  return line;
}

}  // namespace sgdph::cli
