#include "command.h"

#include "base/error.h"
#include "base/files.h"
#include "base/terminal.h"
#include "data/datasets.h"
#include "dist/group.h"
#include "evaluate_path.h"
#include "models/state_dict.h"
#include "saved_model.h"
#include "train/data_parallel.h"
#include "train/evaluate.h"
#include "train/ranks.h"
#include "train/resolve.h"
#include "train/run_parts.h"

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include <memory>

namespace sgdph::cli {
namespace {

/// Refuses options that mean nothing to an evaluation.
void check_meant(const lab::settings::Layer& given) {
  lab::settings::Settings scratch;
  for (const auto& field : lab::settings::fields_of_all_optimizers(scratch)) {
    const auto found = given.find(field.key);
    if (found != given.end() && !evaluation_uses(field)) {
      lab::fail("{}: means nothing to an evaluation", found->second.where);
    }
  }
}

int evaluate_together(
    const std::string& path, const SettingsOptions& given, const EvaluateOptions& options, lab::dist::Group& group) {
  auto saved = open_saved_model(path, given, options.weights);
  lab::train::take_environment(saved.settings, group.environment(), given.given().count("ranks") != 0);
  const auto settings = lab::train::resolve(saved.settings);
  at::set_num_threads(static_cast<int>(settings.threads));
  const auto data = lab::data::open_test_set(settings.dataset, settings.data_path);
  const auto model = lab::train::build_model(settings, *data);
  lab::models::load_state_dict(*model, saved.state_dict, saved.source);
  const at::Device device(settings.device);
  model->to(device);

  auto facts = lab::train::facts_of(settings);
  facts.update(lab::train::facts_of(*data, "test"));
  group.compare("evaluation", facts);
  group.connect(!device.is_cpu());
  lab::train::share_weights(*model, group);

  lab::data::Loader loader(*data, lab::train::shared_by(group, lab::train::test_loader_options(settings, *data)));
  const auto result = lab::train::evaluate(*model, loader, device, {0, settings.bf16(), &group});
  if (!group.is_first()) return 0;
  if (!options.export_to.empty()) lab::write_file_atomically(options.export_to, {lab::models::save_state_dict(*model)});
  if (options.json) {
    nlohmann::json record{{"source", saved.source},      {"weights", options.weights},
                          {"dataset", settings.dataset}, {"images", result.images},
                          {"top1", result.top1},         {"top5", result.top5},
                          {"loss", result.loss},         {"damaged_images", result.damaged}};
    if (saved.epoch > 0) record["epoch"] = saved.epoch;
    lab::print("{}\n", record.dump());
  } else {
    lab::print(
        "{}{}{} on {} ({} images): top-1 {:.2f} %  top-5 {:.2f} %  loss {:.4f}\n", saved.source,
        saved.epoch > 0 ? fmt::format(", epoch {},", saved.epoch) : "",
        options.weights == kEma ? ", moving average," : "", settings.dataset, result.images, result.top1, result.top5,
        result.loss);
    if (result.damaged > 0) lab::print("{} damaged images were left out\n", result.damaged);
  }
  return 0;
}

}  // namespace

bool evaluation_uses(const lab::settings::Field& field) {
  return field.evaluates;
}

int evaluate_path(const std::string& path, const SettingsOptions& given, const EvaluateOptions& options) {
  check_meant(given.given());
  // The others wait at the door before anything is opened: a mistake of one of them has a name then.
  lab::dist::GroupOptions group_options;
  const auto environment = lab::dist::environment();
  if (!environment.alone()) {
    group_options.timeout = lab::train::timeout_of(given.sources(), path);
    group_options.facts = {{"the command", "eval"}, {"--weights", options.weights}};
    group_options.facts.update(lab::train::version_facts());
  }
  lab::dist::Group group(environment, group_options);
  return lab::dist::guarded(group, [&] { return evaluate_together(path, given, options, group); });
}

Action setup_eval(CLI::App& app) {
  struct State {
    std::string path;
    SettingsOptions settings;
    EvaluateOptions options;
  };
  auto state = std::make_shared<State>();
  app.add_option("path", state->path, "a run's folder, a checkpoint, or a state dict (then give --model and --dataset)")
      ->required()
      ->type_name("PATH");
  app.add_option(
         "--weights", state->options.weights,
         "of a run: last; best by validation (with --val-split); ema, their moving average (with --model-ema)")
      ->check(CLI::IsMember({kLast, kBest, kEma}).description(""))
      ->default_str(kLast)
      ->type_name("{last,best,ema}");
  app.add_flag("--json", state->options.json, "print one JSON record");
  app.add_option("--export", state->options.export_to, "also write the weights as a state dict for Python's torch.load")
      ->type_name("FILE");
  state->settings.add_to(app, evaluation_uses);
  return [state] { return evaluate_path(state->path, state->settings, state->options); };
}

}  // namespace sgdph::cli
