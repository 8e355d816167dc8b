#include "saved_model.h"

#include "base/error.h"
#include "base/files.h"
#include "train/run_folder.h"

#include <filesystem>
#include <optional>

namespace sgdph::cli {
namespace {

namespace fs = std::filesystem;

/// Settings of a checkpoint with the options on top.
lab::settings::Settings settings_over(
    const lab::formats::CheckpointFile& file, const SettingsOptions& given, const std::string& where) {
  if (!file.meta.contains("settings")) lab::fail("{}: the checkpoint has no settings", where);
  if (given.has_files()) lab::fail("--recipe and --config: {} has its own settings; give options instead", where);
  auto settings = lab::settings::settings_from_json(file.meta.at("settings"), where);
  auto stored = settings;
  const auto options = given.given();
  if (options.count("dataset") != 0 && options.at("dataset").value != stored.dataset) {
    for (const auto& field : lab::settings::fields_of(settings)) {
      if (field.follows_dataset) field.clear();
    }
  }
  lab::settings::apply_layer(settings, options);
  const auto before = lab::settings::fields_of(stored);
  const auto after = lab::settings::fields_of(settings);
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].part != lab::settings::Field::Part::Model || before[i].get() == after[i].get()) continue;
    lab::fail(
        "{} is a checkpoint of another model: its {} is {}, not {}", where, before[i].key, before[i].get().dump(),
        after[i].get().dump());
  }
  return settings;
}

/// The weights that a run's folder keeps beside its checkpoints.
SavedModel best_of_run(const fs::path& folder, lab::settings::Settings settings) {
  const auto file = folder / lab::train::kBestWeights;
  if (!fs::exists(file)) {
    lab::fail(
        "--weights best: {} keeps none: {}", folder.string(),
        settings.val_split > 0 ? "no epoch is done yet"
                               : "the best are chosen by validation, and it has no --val-split");
  }
  return {std::move(settings), file.string(), lab::read_file(file)};
}

}  // namespace

SavedModel open_saved_model(const std::string& path, const SettingsOptions& given, const std::string& weights) {
  if (!fs::exists(path)) lab::fail("{} does not exist; give a run's folder, a checkpoint or a state dict", path);
  std::optional<lab::train::FoundCheckpoint> checkpoint;
  auto bytes = fs::is_directory(path) ? std::string() : lab::read_file(path);
  if (fs::is_directory(path)) {
    if (lab::train::checkpoints_in(path).empty()) {
      lab::fail("{} holds no checkpoint; give a run's folder, a checkpoint or a state dict", path);
    }
    checkpoint = lab::train::find_checkpoint(path);
  } else if (lab::formats::is_checkpoint(bytes)) {
    checkpoint = lab::train::FoundCheckpoint{path, lab::formats::parse_checkpoint(bytes, path)};
  }
  if (weights == kBest && !fs::is_directory(path)) {
    lab::fail("--weights best: {} is a file with weights of its own; give the run's folder", path);
  }
  if (weights == kEma && !checkpoint) {
    lab::fail("--weights ema: {} is a state dict, with weights of its own; give the run's folder", path);
  }
  if (!checkpoint) return {lab::settings::combine(given.sources()), path, std::move(bytes)};
  const auto where = checkpoint->path.string();
  auto settings = settings_over(checkpoint->file, given, where);
  if (weights == kBest) return best_of_run(path, std::move(settings));
  if (weights == kEma) {
    if (!settings.model_ema) lab::fail("--weights ema: {} has none: the run had no --model-ema", where);
    return {std::move(settings), where, checkpoint->file.section(lab::train::kAverageSection, where)};
  }
  return {std::move(settings), where, checkpoint->file.section("model", where)};
}

}  // namespace sgdph::cli
