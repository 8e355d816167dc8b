#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/lock.h"
#include "formats/checkpoint_file.h"
#include "records/run_log.h"
#include "settings/settings.h"

namespace sgdph::lab::train {

constexpr const char* kSettingsFile = "settings.toml";

// Weights for Python in a run's folder.
constexpr const char* kLastWeights = "model.pt";    ///< when the run is finished
constexpr const char* kAveragedWeights = "ema.pt";  ///< their moving average, likewise
constexpr const char* kBestWeights = "best.pt";     ///< of the best epoch by validation
constexpr const char* kNextBest = "best-next.pt";   ///< the same until the checkpoint of its epoch is written

/// Extension of the lock files in a study's folder, beside its runs': who holds RUN.claim has that run.
constexpr const char* kClaim = ".claim";

/// Section of a checkpoint with the moving average of the weights.
constexpr const char* kAverageSection = "model_ema";

/// The folder of a run: settings.toml, log.jsonl, checkpoint-*.ckpt, weights for Python. One process at a time
/// writes to it.
class RunFolder {
 public:
  /// Refuses a path that holds a run already or cannot be written to; makes nothing.
  static void check_free(const std::filesystem::path& path);
  static bool holds_run(const std::filesystem::path& path);
  /// Whether another process is working on it.
  static bool in_use(const std::filesystem::path& path);
  /// Runs of its study that this machine trains now, itself counted.
  static int64_t at_once(const std::filesystem::path& path);

  /// Makes the folder and writes the settings.
  static RunFolder create(const std::filesystem::path& path, const settings::Settings& settings);
  /// An existing run; removes what a killed process left half-written.
  static RunFolder open(const std::filesystem::path& path);

  /// The same folder for a process beside the one that writes: it holds nothing and changes nothing.
  static RunFolder of_another_process(const std::filesystem::path& path);

  /// Takes a new run's files away again if it failed before its first checkpoint.
  void discard_unless_begun() const;

  const std::filesystem::path& path() const { return path_; }
  /// Empty for a process that does not write.
  std::filesystem::path log() const { return lock_ ? path_ / records::kRunLog : std::filesystem::path(); }
  std::filesystem::path model() const { return path_ / kLastWeights; }
  std::filesystem::path best() const { return path_ / kBestWeights; }
  std::filesystem::path next_best() const { return path_ / kNextBest; }
  std::filesystem::path averaged() const { return path_ / kAveragedWeights; }
  settings::Settings settings() const;
  void replace_settings(const settings::Settings& settings) const;

  /// The newest checkpoint that is whole; nothing if there is none at all. Damaged ones before it are set aside with a
  /// warning; if there are only such it is a UserError and they stay.
  std::optional<formats::CheckpointFile> newest_checkpoint() const;
  /// Writes a checkpoint, then removes all but the newest `keep`.
  std::filesystem::path add_checkpoint(
      int64_t step, const nlohmann::json& meta, const formats::CheckpointSections& sections, int64_t keep) const;

 private:
  explicit RunFolder(std::filesystem::path path, bool writes = true);

  std::filesystem::path path_;
  std::optional<FileLock> lock_;  ///< none if this process does not write
};

/// The checkpoints of a folder, newest first.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder);
/// The same with the step each was written after.
using NumberedCheckpoints = std::vector<std::pair<int64_t, std::filesystem::path>>;
NumberedCheckpoints numbered_checkpoints(const std::filesystem::path& folder);

/// The checkpoint that a path means: the file itself, or the newest whole one of a run's folder, without changing
/// anything there.
struct FoundCheckpoint {
  std::filesystem::path path;
  formats::CheckpointFile file;
};
FoundCheckpoint find_checkpoint(const std::filesystem::path& path);

}  // namespace sgdph::lab::train
