#include "saved_model.h"

#include "base/error.h"
#include "base/files.h"
#include "formats/bytes.h"
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

/// The weights that a run's folder keeps beside its checkpoints: those of the epoch that the newest says is the best.
SavedModel best_of_run(const fs::path& folder, const nlohmann::json& meta, lab::settings::Settings settings) {
  const auto none = [&](const std::string& why) { lab::fail("--weights best: {} has none: {}", folder.string(), why); };
  if (settings.val_split == 0) none("the best are chosen by validation, and it has no --val-split");
  const auto epoch = meta.value("state", nlohmann::json::object()).value("best_epoch", int64_t{0});
  if (epoch == 0) none("no epoch is done yet");
  const auto best = meta.value("best", nlohmann::json::object());
  bool any = false;
  // A run that was killed has them under the other name.
  for (const auto* name : {lab::train::kBestWeights, lab::train::kNextBest}) {
    const auto file = folder / name;
    if (!fs::exists(file)) continue;
    any = true;
    auto bytes = lab::read_file(file);
    if (best.contains("crc32") && best["crc32"] != lab::formats::crc32(bytes)) continue;
    return {std::move(settings), file.string(), std::move(bytes), epoch};
  }
  none(
      any ? fmt::format("{} is of another epoch than {}, its best", lab::train::kBestWeights, epoch)
          : fmt::format("epoch {} is its best, and {} is gone", epoch, lab::train::kBestWeights));
  return {};
}

}  // namespace

SavedModel open_saved_model(const std::string& path, const SettingsOptions& given, const std::string& weights) {
  if (!fs::exists(path)) lab::fail("{} does not exist; give a run's folder, a checkpoint or a state dict", path);
  std::optional<lab::train::FoundCheckpoint> checkpoint;
  auto bytes = fs::is_directory(path) ? std::string() : lab::read_named_file(path);
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
  if (weights == kBest) return best_of_run(path, checkpoint->file.meta, std::move(settings));
  if (weights == kEma) {
    if (!settings.model_ema) lab::fail("--weights ema: {} has none: the run had no --model-ema", where);
    return {std::move(settings), where, checkpoint->file.section(lab::train::kAverageSection, where)};
  }
  return {std::move(settings), where, checkpoint->file.section("model", where)};
}

}  // namespace sgdph::cli
