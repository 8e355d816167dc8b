#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/machine.h"
#include "base/progress.h"
#include "data/loader.h"
#include "dist/group.h"
#include "records/run_log.h"
#include "train/data_parallel.h"
#include "train/judge.h"
#include "train/run_folder.h"
#include "train/run_parts.h"
#include "train/training_step.h"
#include "train/weights.h"

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
  double best_top1 = 0;  ///< by validation, or without it by the test set
  int64_t best_epoch = 0;
  double train_seconds = 0;
  int64_t peak_memory = 0;

  /// Counts from nothing what is counted by epochs.
  void begin_epoch();

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
  /// Of a group every rank has a trainer; the first one's folder is written to. The group must outlive it.
  Trainer(RunParts parts, RunFolder folder, Progress& progress, dist::Group* group = nullptr);
  ~Trainer();

  RunEnd run();

  const RunFolder& folder() const { return folder_; }
  const RunState& state() const { return state_; }
  /// The records so far.
  const records::RunLog& log() const { return log_; }
  /// Whether the run was finished before: nothing of it is written anew.
  bool was_finished() const { return was_finished_; }
  /// What happened when a run ends early, in one line.
  const std::string& message() const { return message_; }

 private:
  void restore(const formats::CheckpointFile& file);
  nlohmann::json header() const;
  void note_ranks(nlohmann::json& header) const;
  bool train_epoch();
  /// One step of the optimizer; false at the end of the epoch or if the run must stop.
  bool train_step();
  void finish_epoch();
  nlohmann::json epoch_record(const nlohmann::json& judged, double seconds) const;
  void say_epoch(const nlohmann::json& record) const;
  /// After a step: the moving average of the weights, if there is one.
  void average_weights();
  /// Runs the evaluation with the averages in the network's place.
  Evaluation with_averages(const std::function<Evaluation()>& evaluation);
  /// Notes the best epoch; where that is by validation its weights are written. They take the place of those before
  /// when the checkpoint says that they are the best: whenever the run is killed, both speak of the same epoch.
  void keep_best(double top1);
  void settle_best();
  /// What the folder has of the best weights that the checkpoint speaks of; true if they are lost, and the best epoch
  /// has to be found again.
  bool best_is_lost(const RunState& state);
  /// The log as it is if the run of this checkpoint came to its end; empty otherwise.
  std::vector<nlohmann::json> finished_log(const RunState& state, size_t records) const;
  void write_final_weights(bool only_missing);
  /// Whether a test within the epoch is due after the last step, and was not made yet.
  bool test_due() const;
  /// A test within the epoch; made when the run is continued if it was interrupted.
  void test_on_the_way();
  /// Writes a checkpoint and ends the run there.
  void stop_here();
  /// Tests and writes the weights; false if interrupted.
  bool finish_run();
  /// What the end of the log says of the network; nothing if interrupted.
  std::optional<nlohmann::json> final_figures();
  std::string save_checkpoint();
  /// For a checkpoint of a run with batches of `old_size`.
  void move_to_batches_of(RunState& state, int64_t old_size) const;
  bool weights_finite() const;
  void diverge(const std::string& what);
  /// Of the whole run.
  double fraction() const;
  void show_progress();
  /// Once a run: a line in the log if others take its cores.
  void note_if_slowed();
  /// How many runs of its study share the machine, looked at now and then.
  void count_neighbours();
  /// What the end of the log says of time and memory.
  nlohmann::json whole_cost(double seconds) const;
  int64_t steps_per_epoch() const;
  /// Images of the step that begins at a batch, over all ranks.
  int64_t images_of_step(const std::vector<data::Batch>& own);
  /// What the network draws at random for a batch, dropout's masks, depends on seed, epoch and batch alone.
  void seed_draws(int64_t batch) const;
  /// Whether some rank was asked to stop; all ranks agree at the same step.
  bool must_stop() const;
  /// Figures of each rank for an epoch's record: a slow one waits least.
  nlohmann::json rank_costs();

  RunParts parts_;
  RunFolder folder_;
  Progress& progress_;
  at::Device device_;
  TrainingStep training_step_;
  dist::Group one_process_;
  dist::Group& group_;
  DataParallel parallel_;
  std::unique_ptr<data::Loader> train_loader_;
  Judge judge_;
  std::unique_ptr<Scheduler> schedule_;
  std::optional<AveragedWeights> average_;  ///< with --model-ema
  records::RunLog log_;
  std::unique_ptr<EventLog> events_;  ///< null without --tensorboard
  RunState state_;
  std::optional<uint32_t> best_sum_;  ///< checksum of the best weights, if they are kept
  bool was_finished_ = false;
  CoreWatch core_watch_;
  int64_t at_once_ = 1;            ///< most runs of its study on this machine, itself counted
  double neighbours_seen_ = -1e9;  ///< when they were counted, in seconds
  std::optional<RunEnd> stopped_;
  bool stop_agreed_ = false;      ///< by all ranks
  bool checkpoint_time_ = false;  ///< likewise
  double last_checkpoint_ = 0;    ///< time
  double waited_before_ = 0;      ///< in collectives, before the epoch under way
  std::string message_;
  // Of the last step begun, for messages.
  int64_t last_step_ = 0;
  int64_t last_epoch_ = 0;
  double last_lr_ = 0;
};

}  // namespace sgdph::lab::train
