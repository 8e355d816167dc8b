#pragma once

#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>

#include "base/progress.h"
#include "data/loader.h"
#include "records/run_log.h"
#include "train/run_folder.h"
#include "train/run_parts.h"
#include "train/training_step.h"

namespace sgdph {
class Scheduler;
}

namespace sgdph::lab::train {

class EventLog;

enum class RunEnd { Finished, Interrupted, Diverged };

/// Where a run stands. With the sections of a checkpoint it is all that the rest of the run depends on.
struct RunState {
  int64_t epoch = 0;  ///< epochs completed
  int64_t batch = 0;  ///< batches done of the epoch under way
  int64_t step = 0;   ///< optimizer steps
  // Of the epoch under way.
  double loss_sum = 0;
  int64_t correct = 0;
  int64_t seen = 0;
  int64_t skipped = 0;  ///< steps the optimizer refused because of non-finite values
  int64_t skipped_in_a_row = 0;
  double seconds = 0;
  // Of the whole run.
  double best_top1 = 0;
  int64_t best_epoch = 0;
  double train_seconds = 0;
  int64_t peak_memory = 0;

  NLOHMANN_DEFINE_TYPE_INTRUSIVE(
      RunState, epoch, batch, step, loss_sum, correct, seen, skipped, skipped_in_a_row, seconds, best_top1, best_epoch,
      train_seconds, peak_memory)
};

/// Trains, evaluates after each epoch, logs and writes checkpoints. What it computes depends on the settings only: a
/// run that was stopped at any moment and continued ends with the same bits.
class Trainer {
 public:
  /// Continues from the folder's newest checkpoint if it has one, with settings of which only those may have changed
  /// that leave the result alone.
  Trainer(RunParts parts, RunFolder folder, Progress& progress);
  ~Trainer();

  RunEnd run();

  const RunFolder& folder() const { return folder_; }
  const RunState& state() const { return state_; }
  /// The records so far.
  const records::RunLog& log() const { return log_; }
  /// What happened when a run ends early, in one line.
  const std::string& message() const { return message_; }

 private:
  void restore(const formats::CheckpointFile& file);
  nlohmann::json header() const;
  bool train_epoch();
  /// One step of the optimizer; false at the end of the epoch or if the run must stop.
  bool train_step();
  void finish_epoch();
  /// Whether a test within the epoch is due after the last step, and was not made yet.
  bool test_due() const;
  /// A test within the epoch; made when the run is continued if it was interrupted.
  void test_on_the_way();
  /// Writes a checkpoint and ends the run there.
  void stop_here();
  void finish_run();
  std::string save_checkpoint();
  bool weights_finite() const;
  void diverge(const std::string& what);
  /// Of the whole run.
  double fraction() const;
  void show_progress();
  int64_t steps_per_epoch() const;

  RunParts parts_;
  RunFolder folder_;
  Progress& progress_;
  at::Device device_;
  TrainingStep training_step_;
  std::unique_ptr<data::Loader> train_loader_;
  std::unique_ptr<data::Loader> test_loader_;
  std::unique_ptr<Scheduler> schedule_;
  records::RunLog log_;
  std::unique_ptr<EventLog> events_;  ///< null without --tensorboard
  RunState state_;
  std::optional<RunEnd> stopped_;
  std::string message_;
  // Of the last step begun, for messages.
  int64_t last_step_ = 0;
  int64_t last_epoch_ = 0;
  double last_lr_ = 0;
};

}  // namespace sgdph::lab::train
