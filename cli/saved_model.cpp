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

}  // namespace

SavedModel open_saved_model(const std::string& path, const SettingsOptions& given) {
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
  if (!checkpoint) return {lab::settings::combine(given.sources()), path, std::move(bytes)};
  const auto where = checkpoint->path.string();
  return {settings_over(checkpoint->file, given, where), where, checkpoint->file.section("model", where)};
}

}  // namespace sgdph::cli
