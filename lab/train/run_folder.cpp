#include "train/run_folder.h"

#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"
#include "settings/recipe.h"

#include <spdlog/spdlog.h>

#include <unistd.h>
#include <algorithm>
#include <utility>

namespace sgdph::lab::train {
namespace {

namespace fs = std::filesystem;

fs::path settings_file(const fs::path& folder) {
  return folder / kSettingsFile;
}

fs::path lock_file(const fs::path& folder) {
  return folder / ".lock";
}

constexpr std::string_view kPrefix = "checkpoint-";

/// The newest checkpoint of a folder that is whole, and those newer than it.
FoundCheckpoint newest_whole(const fs::path& folder, std::vector<fs::path>& damaged) {
  for (const auto& candidate : checkpoints_in(folder)) {
    try {
      return {candidate, formats::read_checkpoint(candidate)};
    } catch (const formats::DamagedCheckpoint& damage) {
      spdlog::warn("{}; trying the one before it", damage.what());
      damaged.push_back(candidate);
    }
  }
  fail("{} has no whole checkpoint; start a new run in another folder", folder.string());
}

}  // namespace

bool RunFolder::holds_run(const fs::path& path) {
  std::error_code error;
  return fs::exists(settings_file(path), error);
}

void RunFolder::check_free(const fs::path& path) {
  if (holds_run(path)) {
    fail(
        "{} already holds a run; continue it with --resume {} or choose another --output-dir", path.string(),
        shell_word(path.string()));
  }
  std::error_code error;
  if (fs::is_directory(path, error) && !checkpoints_in(path).empty()) {
    fail("{} holds checkpoints of another run; choose another --output-dir", path.string());
  }
  // The nearest folder that exists must take the new one.
  auto existing = fs::absolute(path);
  while (!fs::exists(existing, error) && existing.has_parent_path() && existing != existing.parent_path()) {
    existing = existing.parent_path();
  }
  if (!fs::is_directory(existing, error) || ::access(existing.c_str(), W_OK | X_OK) != 0) {
    fail(
        "cannot write to {}: {} is not a writable folder; choose another --output-dir", path.string(),
        existing.string());
  }
}

bool RunFolder::in_use(const fs::path& path) {
  return FileLock::is_held(lock_file(path));
}

int64_t RunFolder::at_once(const fs::path& path) {
  auto whole = fs::absolute(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  const auto claimed = held_locks(whole.parent_path(), kClaim, own_host());
  const bool counted = FileLock::is_held(whole.string() + kClaim);
  return std::max<int64_t>(1, claimed + (counted ? 0 : 1));
}

RunFolder::RunFolder(fs::path path, bool writes) : path_(std::move(path)) {
  if (writes) lock_.emplace(lock_file(path_), fmt::format("working on {}", path_.string()), FileLock::After::Keep);
}

RunFolder RunFolder::of_another_process(const fs::path& path) {
  return RunFolder(path, false);
}

RunFolder RunFolder::create(const fs::path& path, const settings::Settings& settings) {
  check_free(path);
  make_writable_folder(path);
  RunFolder folder(path);
  folder.replace_settings(settings);
  return folder;
}

void RunFolder::discard_unless_begun() const {
  if (!lock_ || !checkpoints_in(path_).empty()) return;
  // What cannot be removed is no reason to say less of what happened before. The settings last: a folder that has them
  // is a run to go on with, whatever else it lacks.
  std::error_code ignored;
  for (const auto& file : {log(), best(), next_best(), settings_file(path_), lock_file(path_)}) {
    fs::remove(file, ignored);
  }
  fs::remove(path_, ignored);
}

RunFolder RunFolder::open(const fs::path& path) {
  if (!holds_run(path)) fail("{} holds no run (no settings.toml); give the folder that train wrote", path.string());
  RunFolder folder(path);
  remove_all_half_written(path);
  return folder;
}

settings::Settings RunFolder::settings() const {
  return settings::read_stored_settings(settings_file(path_).string());
}

void RunFolder::replace_settings(const settings::Settings& settings) const {
  if (!lock_) return;
  write_own_file(settings_file(path_), {settings::to_toml(settings)});
}

NumberedCheckpoints numbered_checkpoints(const fs::path& folder) {
  NumberedCheckpoints found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().stem().string();
    if (name.rfind(kPrefix, 0) != 0 || entry.path().extension() != ".ckpt") continue;
    if (const auto step = number_from<int64_t>(name.substr(kPrefix.size()))) found.emplace_back(*step, entry.path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (auto& [step, path] : numbered_checkpoints(folder)) paths.push_back(path);
  return paths;
}

std::optional<formats::CheckpointFile> RunFolder::newest_checkpoint() const {
  if (!lock_ || checkpoints_in(path_).empty()) return std::nullopt;
  std::vector<fs::path> damaged;
  auto found = newest_whole(path_, damaged);
  // Out of the way, or they would be kept in place of good ones.
  for (const auto& file : damaged) put_in_place(file, file.string() + ".damaged");
  return std::move(found.file);
}

fs::path RunFolder::add_checkpoint(
    int64_t step, const nlohmann::json& meta, const formats::CheckpointSections& sections, int64_t keep) const {
  auto path = path_ / fmt::format("{}{:09}.ckpt", kPrefix, step);
  if (!lock_) return path;
  formats::write_checkpoint(path, meta, sections);
  const auto all = checkpoints_in(path_);
  for (size_t i = static_cast<size_t>(keep); i < all.size(); ++i) {
    std::error_code error;
    fs::remove(all[i], error);
    if (error)
      spdlog::warn("cannot remove the old {}: {}; the next checkpoint tries again", all[i].string(), error.message());
  }
  return path;
}

FoundCheckpoint find_checkpoint(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path, formats::read_checkpoint(path)};
  std::vector<fs::path> damaged;
  return newest_whole(path, damaged);
}

}  // namespace sgdph::lab::train
