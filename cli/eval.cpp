#include "command.h"

#include "base/error.h"
#include "base/files.h"
#include "evaluate_path.h"
#include "models/state_dict.h"
#include "train/evaluate.h"
#include "train/run_folder.h"
#include "train/setup.h"

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace sgdph::cli {
namespace {

namespace fs = std::filesystem;

/// Refuses options that mean nothing to an evaluation.
void check_meant(const lab::Layer& given) {
  lab::Settings scratch;
  for (const auto& field : lab::fields_of(scratch)) {
    const auto found = given.find(field.key);
    if (found != given.end() && !evaluation_uses(field)) {
      lab::fail("{}: means nothing to an evaluation", found->second.where);
    }
  }
}

/// Settings of a checkpoint with the options on top.
lab::Settings settings_over(const lab::CheckpointFile& file, const SettingsOptions& given, const std::string& where) {
  if (!file.meta.contains("settings")) lab::fail("{}: the checkpoint has no settings", where);
  if (given.has_files()) lab::fail("--recipe and --config: {} has its own settings; give options instead", where);
  auto settings = lab::settings_from_json(file.meta.at("settings"), where);
  auto stored = settings;
  const auto options = given.given();
  if (options.count("dataset") != 0 && options.at("dataset").value != stored.dataset) {
    settings.data_path.clear();
    settings.workers.reset();
  }
  lab::apply_layer(settings, options);
  const auto before = lab::fields_of(stored);
  const auto after = lab::fields_of(settings);
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].part != lab::Field::Part::Model || before[i].get() == after[i].get()) continue;
    lab::fail(
        "{} is a checkpoint of another model: its {} is {}, not {}", where, before[i].key, before[i].get().dump(),
        after[i].get().dump());
  }
  return settings;
}

}  // namespace

bool evaluation_uses(const lab::Field& field) {
  using Part = lab::Field::Part;
  return field.part == Part::Data || field.part == Part::Model || field.key == "batch_size" || field.key == "device" ||
         field.key == "threads";
}

int evaluate_path(const std::string& path, const SettingsOptions& given, const EvaluateOptions& options) {
  if (!fs::exists(path)) lab::fail("{} does not exist; give a run's folder, a checkpoint or a state dict", path);
  check_meant(given.given());
  lab::Settings settings;
  std::optional<lab::FoundCheckpoint> checkpoint;
  const auto bytes = fs::is_directory(path) ? std::string() : lab::read_file(path);
  if (fs::is_directory(path)) {
    checkpoint = lab::find_checkpoint(path);
  } else if (lab::is_checkpoint(bytes)) {
    checkpoint = lab::FoundCheckpoint{path, lab::parse_checkpoint(bytes, path)};
  }
  if (checkpoint) {
    settings = settings_over(checkpoint->file, given, checkpoint->path.string());
  } else {
    settings = lab::combine(given.sources());
  }
  settings = lab::resolve(settings);
  at::set_num_threads(static_cast<int>(settings.threads));
  const auto data = lab::open_test_set(settings.dataset, settings.data_path);
  const auto model = lab::build_model(settings, *data);
  if (checkpoint) {
    const auto where = checkpoint->path.string();
    lab::load_state_dict(*model, checkpoint->file.section("model", where), where);
  } else {
    lab::load_state_dict(*model, bytes, path);
  }
  const at::Device device(settings.device);
  model->to(device);

  lab::Loader loader(*data, lab::test_loader_options(settings, *data));
  const auto result = lab::evaluate(*model, loader, device);
  if (!options.export_to.empty()) lab::write_file_atomically(options.export_to, {lab::save_state_dict(*model)});
  const auto source = checkpoint ? checkpoint->path.string() : path;
  if (options.json) {
    const nlohmann::json record{{"source", source},
                                {"dataset", settings.dataset},
                                {"images", result.images},
                                {"top1", result.top1},
                                {"top5", result.top5},
                                {"loss", result.loss},
                                {"damaged_images", loader.damaged()}};
    fmt::print("{}\n", record.dump());
  } else {
    fmt::print(
        "{} on {} ({} images): top-1 {:.2f} %  top-5 {:.2f} %  loss {:.4f}\n", source, settings.dataset, result.images,
        result.top1, result.top5, result.loss);
    if (loader.damaged() > 0) fmt::print("{} damaged images were left out\n", loader.damaged());
  }
  return 0;
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
  app.add_flag("--json", state->options.json, "print one JSON record");
  app.add_option("--export", state->options.export_to, "also write the weights as a state dict for Python's torch.load")
      ->type_name("FILE");
  state->settings.add_to(app, evaluation_uses);
  return [state] { return evaluate_path(state->path, state->settings, state->options); };
}

}  // namespace sgdph::cli
