#include "train/trainer.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/machine.h"
#include "models/models.h"
#include "models/state_dict.h"
#include "records/run_record.h"
#include "train/evaluate.h"
#include "train/event_log.h"
#include "train/libtorch.h"
#include "train/schedule.h"

#include <sgdph/schedulers.h>
#include <torch/nn/utils/clip_grad.h>

#include <cmath>

namespace sgdph::lab::train {
namespace {

/// Steps in a row that an optimizer may refuse before the run is given up.
constexpr int64_t kMaxSkipped = 20;

at::Tensor to_device(const at::Tensor& tensor, const at::Device& device) {
  return tensor.to(device, tensor.scalar_type(), /*non_blocking=*/true);
}

double percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Trainer::Trainer(RunParts parts, RunFolder folder, Progress& progress)
    : parts_(std::move(parts)),
      folder_(std::move(folder)),
      progress_(progress),
      device_(parts_.settings.device),
      training_step_(
          *parts_.model, *parts_.optimizer,
          optimizers::batch_part_from_text(
              parts_.settings.option<std::string>(optimizers::kCurvatureBatch, optimizers::kWholeBatch)),
          parts_.settings.label_smoothing),
      train_loader_(std::make_unique<data::Loader>(*parts_.data.train, train_loader_options(parts_.settings))),
      log_(folder_.log()) {
  test_loader_ =
      std::make_unique<data::Loader>(*parts_.data.test, test_loader_options(parts_.settings, *parts_.data.test));
  schedule_ = make_schedule(parts_.optimizer->base(), parts_.settings, steps_per_epoch());
  if (const auto checkpoint = folder_.newest_checkpoint()) {
    restore(*checkpoint);
  } else {
    log_.start({header()});
  }
  if (parts_.settings.tensorboard) {
    events_ = std::make_unique<EventLog>(folder_.path());
    events_->catch_up(log_.records());
  }
}

Trainer::~Trainer() = default;

int64_t Trainer::steps_per_epoch() const {
  return (train_loader_->batches() + parts_.settings.accumulate - 1) / parts_.settings.accumulate;
}

nlohmann::json Trainer::header() const {
  nlohmann::json header = records::machine_facts(libtorch_version(), parts_.settings.threads);
  header.update(
      {{"type", "header"},
       {"seed", parts_.settings.seed},
       {"parameters", models::count_parameters(*parts_.model)},
       {"train_images", train_loader_->images()},
       {"test_images", test_loader_->images()},
       {"settings", settings::to_json(parts_.settings)}});
  return header;
}

RunEnd Trainer::run() {
  const InterruptGuard guard;
  parts_.model->train();
  progress_.start(fraction());
  while (!stopped_ && state_.epoch < parts_.settings.epochs) {
    if (train_epoch()) finish_epoch();
  }
  progress_.clear();
  if (!stopped_) {
    finish_run();
    return RunEnd::Finished;
  }
  return *stopped_;
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
      if (interrupted()) stop_here();
    }
    if (stopped_ || !train_step()) break;
    take_time();
    show_progress();
    const bool wanted = every > 0 && state_.step % every == 0 && state_.batch < train_loader_->batches();
    if (interrupted()) {
      stop_here();
    } else if (wanted) {
      save_checkpoint();
    }
    if (interrupted() || wanted) started = seconds_now();
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
  if (batches.empty()) return false;
  last_step_ = state_.step + 1;
  last_epoch_ = state_.epoch + 1;
  last_lr_ = optimizer.lr();
  int64_t images_of_step = 0;
  for (const auto& batch : batches) images_of_step += batch.labels.size(0);
  for (const auto& batch : batches) {
    const auto labels = to_device(batch.labels, device_);
    const auto step = training_step_.forward(to_device(batch.images, device_), labels);
    const auto value = step.loss.item<double>();
    if (!std::isfinite(value)) {
      diverge(fmt::format("the loss became {}", std::isnan(value) ? "nan" : "infinite"));
      return false;
    }
    const auto images = labels.size(0);
    // The mean over all images, also where the epoch's last batch is smaller.
    training_step_.backward(step, static_cast<double>(images) / static_cast<double>(images_of_step));
    state_.loss_sum += value * static_cast<double>(images);
    state_.correct += step.scores.detach().argmax(1).eq(labels).sum().item<int64_t>();
    state_.seen += images;
  }
  if (s.clip_grad_norm > 0) torch::nn::utils::clip_grad_norm_(parts_.model->parameters(), s.clip_grad_norm);
  const bool applied = optimizer.step();
  state_.skipped += applied ? 0 : 1;
  state_.skipped_in_a_row = applied ? 0 : state_.skipped_in_a_row + 1;
  schedule_->step();
  state_.batch = train_loader_->position();
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

bool Trainer::test_due() const {
  const auto every = parts_.settings.eval_every;
  const auto steps = steps_per_epoch();
  const auto done = state_.step - state_.epoch * steps;
  if (every == 0 || done == 0 || done >= steps) return false;
  const auto gap =
      every < 1 ? std::max<int64_t>(1, std::llround(every * static_cast<double>(steps))) : std::llround(every);
  // The test at the epoch's end takes the place of one just before it.
  if (every < 1 ? done % gap != 0 || 2 * (steps - done) < gap : state_.step % gap != 0) return false;
  const auto& last = log_.records().back();
  return last.at("type") != "eval" || last.at("step") != state_.step;
}

void Trainer::test_on_the_way() {
  const double started = seconds_now();
  const auto test = evaluate(*parts_.model, *test_loader_, device_, parts_.settings.eval_limit);
  if (interrupted()) return;
  const auto steps = static_cast<double>(steps_per_epoch());
  log_.append(
      {{"type", "eval"},
       {"epoch", static_cast<double>(state_.step) / steps},
       {"step", state_.step},
       {"images", test.images},
       {"test_loss", test.loss},
       {"test_top1", test.top1},
       {"test_top5", test.top5},
       {"cost", {{"train_seconds", state_.seconds}, {"test_seconds", seconds_now() - started}}}});
}

void Trainer::finish_epoch() {
  const double started = seconds_now();
  const auto test = evaluate(*parts_.model, *test_loader_, device_);
  if (interrupted()) {
    // The epoch's training is done and its test is not: the checkpoint stands before the test.
    return stop_here();
  }
  if (!std::isfinite(test.loss))
    return diverge(fmt::format("the test loss became {}", std::isnan(test.loss) ? "nan" : "infinite"));
  ++state_.epoch;
  if (state_.best_epoch == 0 || test.top1 > state_.best_top1) {
    state_.best_top1 = test.top1;
    state_.best_epoch = state_.epoch;
  }
  state_.train_seconds += state_.seconds;
  const auto seen = static_cast<double>(state_.seen);
  const auto train_loss = state_.loss_sum / seen;
  const auto train_top1 = percent(state_.correct, state_.seen);
  nlohmann::json record{
      {"type", "epoch"},
      {"epoch", state_.epoch},
      {"step", state_.step},
      {"lr", last_lr_},
      {"train_loss", train_loss},
      {"train_top1", train_top1},
      {"test_loss", test.loss},
      {"test_top1", test.top1},
      {"test_top5", test.top5},
      {"skipped_steps", state_.skipped},
      {"damaged_images", train_loader_->images() - state_.seen},
      {"cost",
       {{"train_seconds", state_.seconds},
        {"test_seconds", seconds_now() - started},
        {"images_per_second", seen / state_.seconds},
        {"peak_memory_bytes", peak_memory_bytes()}}}};
  progress_.line(fmt::format(
      "epoch {:{}}/{}  train loss {:.4f}  acc {:5.2f} %   test loss {:.4f}  acc {:5.2f} % (best {:.2f})   {:.1f} s",
      state_.epoch, std::to_string(parts_.settings.epochs).size(), parts_.settings.epochs, train_loss, train_top1,
      test.loss, test.top1, state_.best_top1, state_.seconds));
  state_.batch = 0;
  state_.loss_sum = 0;
  state_.correct = state_.seen = state_.skipped = 0;
  state_.seconds = 0;
  if (events_) events_->write(record);
  log_.append(std::move(record));
  save_checkpoint();
}

void Trainer::finish_run() {
  const auto& records = log_.records();
  if (records.back().at("type") != "end") {
    const auto& last = records.back();
    log_.append(
        {{"type", "end"},
         {"status", "finished"},
         {"epochs", state_.epoch},
         {"steps", state_.step},
         {"test_top1", last.at("test_top1")},
         {"best_top1", state_.best_top1},
         {"best_epoch", state_.best_epoch},
         {"cost",
          {{"train_seconds", state_.train_seconds},
           {"peak_memory_bytes", std::max(state_.peak_memory, peak_memory_bytes())}}}});
  }
  write_file_atomically(folder_.model(), {models::save_state_dict(*parts_.model)});
}

void Trainer::diverge(const std::string& what) {
  if (stopped_) return;
  stopped_ = RunEnd::Diverged;
  // A checkpoint is known to be good when a step after it had a finite loss.
  std::string good = "none yet";
  for (const auto& [step, path] : numbered_checkpoints(folder_.path())) {
    if (step + 1 < last_step_ && good == "none yet") good = path.string();
  }
  message_ = fmt::format(
      "{} at step {} (epoch {}), learning rate {:g}; last good checkpoint: {}; try a smaller --lr, --clip-grad-norm or "
      "--lr-warmup-epochs",
      what, last_step_, last_epoch_, last_lr_, good);
  log_.append(
      {{"type", "end"},
       {"status", "diverged"},
       {"epochs", state_.epoch},
       {"steps", state_.step},
       {"message", message_},
       {"cost",
        {{"train_seconds", state_.train_seconds + state_.seconds},
         {"peak_memory_bytes", std::max(state_.peak_memory, peak_memory_bytes())}}}});
}

double Trainer::fraction() const {
  const auto batches = static_cast<double>(train_loader_->batches());
  return (static_cast<double>(state_.epoch) + static_cast<double>(state_.batch) / batches) /
         static_cast<double>(parts_.settings.epochs);
}

void Trainer::show_progress() {
  const auto epoch = state_.epoch + 1;
  const auto epochs = parts_.settings.epochs;
  const auto batches = train_loader_->batches();
  const auto loss = state_.loss_sum / static_cast<double>(std::max<int64_t>(1, state_.seen));
  const auto accuracy = percent(state_.correct, state_.seen);
  const auto speed = static_cast<double>(state_.seen) / std::max(1e-9, state_.seconds);
  progress_.at(
      fraction(),
      fmt::format("epoch {}/{}  loss {:.3f}  acc {:5.2f} %  {:.0f} img/s", epoch, epochs, loss, accuracy, speed),
      {{"epoch", epoch},
       {"epochs", epochs},
       {"done", state_.epoch * batches + state_.batch},
       {"total", epochs * batches},
       {"loss", loss},
       {"accuracy", accuracy},
       {"images_per_second", speed}});
}

}  // namespace sgdph::lab::train
