#include "command.h"

#include "base/files.h"
#include "base/interrupt.h"
#include "base/terminal.h"
#include "common_options.h"
#include "inspect/inspect.h"
#include "saved_model.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

namespace sgdph::cli {
namespace {

struct InspectCommand {
  std::string path;
  SettingsOptions settings;
  SettingsOptions estimates;
  lab::inspect::InspectOptions options;
  std::string output_dir;
  std::string format = "text";
};

int run(const InspectCommand& command) {
  auto options = command.options;
  if (command.path.empty()) {
    options.settings = lab::settings::combine(command.settings.sources());
  } else {
    auto saved = open_saved_model(command.path, command.settings);
    options.settings = std::move(saved.settings);
    options.weights = {std::move(saved.source), std::move(saved.state_dict)};
  }
  lab::settings::Settings own;  // the estimates are those of our optimizer, whichever trained the network
  lab::settings::apply_layer(own, command.estimates.given());
  options.estimates = own.optimizer;
  lab::inspect::Inspection inspection(std::move(options));
  if (!command.output_dir.empty()) lab::make_writable_folder(command.output_dir);
  const auto result = inspection.run();
  if (!result.report.rows.empty()) {
    if (!command.output_dir.empty()) lab::inspect::write_inspect_report(result, command.output_dir);
    print_as(command.format, lab::inspect::present(result.report));
  }
  if (result.interrupted) lab::print(stderr, "sgdph: stopped; the figures are those measured until then\n");
  return result.interrupted ? lab::kInterrupted : 0;
}

}  // namespace

Action setup_inspect(CLI::App& app) {
  auto command = std::make_shared<InspectCommand>();
  auto& c = *command;
  const auto* group = "Inspection";
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option(
         "path", c.path,
         "weights to look at: a run's folder, a checkpoint, or a state dict (then give --model and --dataset); by "
         "default the network as it begins")
      ->type_name("PATH");
  app.add_option("--blocks", c.options.blocks, "how many blocks, spread over the network; or names, commas between")
      ->default_str(c.options.blocks)
      ->type_name("N|NAME,...")
      ->group(group);
  app.add_flag("--every-1d", c.options.every_1d, "every 1-D parameter, as in the published code, not by layer type")
      ->group(group);
  app.add_option("--max-channels", c.options.max_channels, "rows for each block at most, spread over it; 0: all")
      ->check(CLI::Range(0, 1000000).description(""))
      ->default_str("0")
      ->type_name("N")
      ->group(group);
  app.add_option("--refreshes", c.options.refreshes, "of the running estimates of each probe")
      ->check(CLI::Range(1, 100000).description(""))
      ->default_str(std::to_string(c.options.refreshes))
      ->type_name("N")
      ->group(group);
  app.add_option("--shards", c.options.shards, "parts of the batch between which curvature is compared; 0: none")
      ->check(CLI::Range(0, 65536).description(""))
      ->default_str(std::to_string(c.options.shards))
      ->type_name("N")
      ->group(group);
  app.add_flag("--float64", c.options.float64, "compute in float64, in about twice the time")->group(group);
  app.add_option("--picture", c.options.picture, "the block to draw; by default one with the median ratio")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--output-dir", c.output_dir, "write inspect.json, .md, .csv and .svg there; by default nothing")
      ->type_name("DIR")
      ->group(group);
  add_format_option(app, c.format)->group(group);
  c.settings.add_to(app, [](const lab::settings::Field& field) { return field.inspects; });
  const auto& names = lab::inspect::estimate_options();
  c.estimates.add_fields(app, [&](const lab::settings::Field& field) {
    return std::find(names.begin(), names.end(), field.key) != names.end();
  });
  return [command] { return run(*command); };
}

}  // namespace sgdph::cli
