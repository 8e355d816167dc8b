#include "train/trainer.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "models/state_dict.h"
#include "train/event_log.h"
#include "train/schedule.h"

#include <ATen/Context.h>
#include <fmt/format.h>
#include <sgdph/schedulers.h>
#include <torch/nn/utils/clip_grad.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <mutex>

namespace sgdph::lab::train {
namespace {

/// Steps in a row that an optimizer may refuse before the run is given up.
constexpr int64_t kMaxSkipped = 20;

at::Tensor to_device(const at::Tensor& tensor, const at::Device& device) {
  return tensor.to(device, tensor.scalar_type(), /*non_blocking=*/true);
}

}  // namespace

void RunState::begin_epoch() {
  batch = 0;
  loss_sum = 0;
  correct = seen = skipped = 0;
  seconds = 0;
}

Trainer::Trainer(RunParts parts, RunFolder folder, Progress& progress, dist::Group* group)
    : parts_(std::move(parts)),
      folder_(std::move(folder)),
      progress_(progress),
      device_(parts_.settings.device),
      training_step_(*parts_.model, *parts_.optimizer, TrainingStep::options_of(parts_.settings)),
      group_(group == nullptr ? one_process_ : *group),
      parallel_(*parts_.model, *parts_.optimizer, group_),
      train_loader_(
          std::make_unique<data::Loader>(*parts_.data.train, shared_by(group_, train_loader_options(parts_.settings)))),
      judge_(parts_, group_),
      log_(folder_.log()),
      core_watch_(seconds_now()) {
  if (parts_.settings.model_ema) average_.emplace(*parts_.model, update_decay(parts_.settings));
  schedule_ = make_schedule(parts_.optimizer->base(), parts_.settings, steps_per_epoch());
  last_checkpoint_ = seconds_now();
  if (const auto checkpoint = share_checkpoint(group_, folder_.newest_checkpoint())) {
    restore(*checkpoint);
  } else {
    log_.start({header()});
  }
  if (parts_.settings.tensorboard && group_.is_first()) {
    events_ = std::make_unique<EventLog>(folder_.path());
    events_->catch_up(log_.records());
  }
}

Trainer::~Trainer() = default;

int64_t Trainer::steps_per_epoch() const {
  const auto of_step = parts_.settings.accumulate * group_.size();
  return (train_loader_->batches() + of_step - 1) / of_step;
}

int64_t Trainer::images_of_step(const std::vector<data::Batch>& own) {
  int64_t images = 0;
  for (const auto& batch : own) images += batch.labels.size(0);
  if (group_.alone()) return images;
  if (parts_.settings.skip_damaged) {
    auto all = at::full({1}, static_cast<double>(images), at::TensorOptions(at::kDouble).device(device_));
    group_.sum(all);
    return all.item<int64_t>();
  }
  const auto from = state_.batch * parts_.settings.batch_size;
  const auto whole = parts_.settings.batch_size * parts_.settings.accumulate * group_.size();
  return std::min(whole, train_loader_->images() - from);
}

void Trainer::seed_draws(int64_t batch) const {
  // Never on what was drawn before, nor on which rank has the batch. Images of the epoch have the streams from 1 on.
  data::Random random(
      static_cast<uint64_t>(parts_.settings.seed), static_cast<uint64_t>(state_.epoch), ~static_cast<uint64_t>(batch));
  auto generator = at::globalContext().defaultGenerator(device_);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(random.bits());
}

bool Trainer::must_stop() const {
  return group_.alone() ? interrupted() : stop_agreed_;
}

RunEnd Trainer::run() {
  const InterruptGuard guard;
  if (was_finished_) {
    write_final_weights(true);
    return RunEnd::Finished;
  }
  parts_.model->train();
  count_neighbours();
  progress_.start(fraction());
  while (!stopped_ && state_.epoch < parts_.settings.epochs) {
    if (train_epoch()) finish_epoch();
  }
  progress_.clear();
  if (!stopped_ && !finish_run()) stop_here();
  return stopped_.value_or(RunEnd::Finished);
}

bool Trainer::train_epoch() {
  train_loader_->start(state_.epoch, state_.batch);
  const auto every = parts_.settings.checkpoint_every;
  double started = seconds_now();
  const auto take_time = [&] {
    const double now = seconds_now();
    state_.seconds += now - started;
    started = now;
  };
  for (;;) {
    if (test_due()) {
      test_on_the_way();
      started = seconds_now();
      if (must_stop()) stop_here();
    }
    if (stopped_ || !train_step()) break;
    take_time();
    show_progress();
    note_if_slowed();
    count_neighbours();
    const bool wanted =
        ((every > 0 && state_.step % every == 0) || checkpoint_time_) && state_.batch < train_loader_->batches();
    if (must_stop()) {
      stop_here();
    } else if (wanted) {
      save_checkpoint();
    }
    if (must_stop() || wanted) started = seconds_now();
    if (stopped_) return false;
  }
  take_time();
  return !stopped_;
}

bool Trainer::train_step() {
  const auto& s = parts_.settings;
  auto& optimizer = *parts_.optimizer;
  training_step_.clear_gradients();
  // All at once, since how many there are is known at the end of an epoch only.
  std::vector<data::Batch> batches;
  while (static_cast<int64_t>(batches.size()) < s.accumulate) {
    auto batch = train_loader_->next();
    if (!batch) break;
    batches.push_back(std::move(*batch));
  }
  if (group_.alone() ? batches.empty() : state_.batch >= train_loader_->batches()) return false;
  last_step_ = state_.step + 1;
  last_epoch_ = state_.epoch + 1;
  last_lr_ = optimizer.lr();
  const auto all_images = static_cast<double>(images_of_step(batches));
  batches.erase(
      std::remove_if(batches.begin(), batches.end(), [](const auto& batch) { return batch.labels.size(0) == 0; }),
      batches.end());
  DataParallel::Totals own;
  own.stop = interrupted();
  const auto minutes = s.checkpoint_minutes;
  own.checkpoint = minutes > 0 && group_.is_first() && seconds_now() - last_checkpoint_ >= 60 * minutes;
  for (const auto& batch : batches) {
    seed_draws(batch.number);
    const auto labels = to_device(batch.labels, device_);
    const auto step = training_step_.forward(to_device(batch.images, device_), labels);
    const auto images = labels.size(0);
    own.loss += step.loss.item<double>() * static_cast<double>(images);
    own.correct += step.scores.detach().argmax(1).eq(labels).sum().item<int64_t>();
    own.seen += images;
    if (!std::isfinite(own.loss)) break;
    if (&batch == &batches.back()) parallel_.begin(own);
    // The mean over all images of all ranks, also where the epoch's last batch is smaller.
    training_step_.backward(step, static_cast<double>(images) / all_images);
  }
  // A rank without a batch, or with a loss that is of no use, meets the others all the same.
  if (batches.empty() || !std::isfinite(own.loss)) parallel_.begin(own, !batches.empty());
  const auto all = parallel_.finish();
  stop_agreed_ = all.stop;
  checkpoint_time_ = all.checkpoint;
  if (!std::isfinite(all.loss)) {
    diverge(fmt::format("the loss became {}", std::isnan(all.loss) ? "nan" : "infinite"));
    return false;
  }
  state_.loss_sum += all.loss;
  state_.correct += all.correct;
  state_.seen += all.seen;
  if (s.clip_grad_norm > 0) torch::nn::utils::clip_grad_norm_(parts_.model->parameters(), s.clip_grad_norm);
  const bool applied = optimizer.step();
  state_.skipped += applied ? 0 : 1;
  state_.skipped_in_a_row = applied ? 0 : state_.skipped_in_a_row + 1;
  average_weights();
  schedule_->step();
  state_.batch = group_.alone() ? train_loader_->position()
                                : std::min(state_.batch + s.accumulate * group_.size(), train_loader_->batches());
  ++state_.step;
  if (state_.skipped_in_a_row >= kMaxSkipped)
    diverge(fmt::format("{} steps in a row met non-finite values", kMaxSkipped));
  return true;
}

void Trainer::stop_here() {
  const auto path = save_checkpoint();
  if (stopped_) return;
  stopped_ = RunEnd::Interrupted;
  message_ = fmt::format("stopped at step {}; {} is written", state_.step, path);
}

void Trainer::write_final_weights(bool only_missing) {
  if (!group_.is_first()) return;
  const auto wanted = [&](const std::filesystem::path& file) {
    std::error_code unknown;
    return !only_missing || !std::filesystem::exists(file, unknown);
  };
  if (wanted(folder_.model())) write_own_file(folder_.model(), {models::save_state_dict(*parts_.model)});
  if (average_ && wanted(folder_.averaged())) write_own_file(folder_.averaged(), {average_->save()});
}

bool Trainer::finish_run() {
  // Before the log says that the run is over: whoever reads that will not come back for the weights.
  write_final_weights(false);
  const auto figures = final_figures();
  if (!figures) return false;
  nlohmann::json record{
      {"type", "end"},
      {"status", "finished"},
      {"epochs", state_.epoch},
      {"steps", state_.step},
      {"cost", whole_cost(state_.train_seconds)}};
  record.update(*figures);
  log_.append(std::move(record));
  return true;
}

}  // namespace sgdph::lab::train
