// When the network of a run is tested, and what is kept of it: its averages, and the best by validation.

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "formats/bytes.h"
#include "models/state_dict.h"
#include "train/event_log.h"
#include "train/trainer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace sgdph::lab::train {

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
  const auto judged = judge_.on_the_way(parts_.settings.eval_limit);
  stop_agreed_ = stop_agreed_ || judged.interrupted;
  if (judged.interrupted) return;
  const auto steps = static_cast<double>(steps_per_epoch());
  nlohmann::json record{
      {"type", "eval"},
      {"epoch", static_cast<double>(state_.step) / steps},
      {"step", state_.step},
      {"images", judged.images},
      {"cost", {{"train_seconds", state_.seconds}, {"test_seconds", seconds_now() - started}}}};
  record.update(figures_of(judge_.key(), judged));
  log_.append(std::move(record));
}

void Trainer::finish_epoch() {
  const double started = seconds_now();
  const auto judged = judge_.on_the_way();
  auto figures = figures_of(judge_.key(), judged);
  bool stopping = judged.interrupted;
  if (average_ && !stopping) {
    const auto averaged = with_averages([&] { return judge_.on_the_way(); });
    figures.update(figures_of("ema_" + judge_.key(), averaged));
    stopping = averaged.interrupted;
  }
  if (stopping) {
    // The epoch's training is done and its test is not: the checkpoint stands before the test.
    return stop_here();
  }
  if (!std::isfinite(judged.loss)) {
    return diverge(fmt::format("the {} loss became {}", judge_.word(), std::isnan(judged.loss) ? "nan" : "infinite"));
  }
  ++state_.epoch;
  keep_best(judged.top1);
  state_.train_seconds += state_.seconds;
  auto record = epoch_record(figures, seconds_now() - started);
  if (!group_.alone()) record["cost"]["ranks"] = rank_costs();
  say_epoch(record);
  state_.begin_epoch();
  if (events_) events_->write(record);
  log_.append(std::move(record));
  save_checkpoint();
  settle_best();
}

std::optional<nlohmann::json> Trainer::final_figures() {
  const auto& last = log_.records().back();
  nlohmann::json figures{{"best_top1", state_.best_top1}, {"best_epoch", state_.best_epoch}};
  if (!judge_.validates()) {
    for (const auto* key : {"test_top1", "ema_test_top1"}) {
      if (last.contains(key)) figures[key] = last.at(key);
    }
    return figures;
  }
  const auto tested = judge_.at_the_end();
  figures.update(figures_of("test", tested));
  figures["val_top1"] = last.at("val_top1");
  bool stopping = tested.interrupted;
  auto best = tested;
  if (state_.best_epoch != state_.epoch) {
    const KeptWeights kept(*parts_.model);
    // The others need not see the folder.
    if (group_.is_first()) load_weights(*parts_.model, folder_.best().string());
    share_weights(*parts_.model, group_);
    best = judge_.at_the_end();
    stopping = stopping || best.interrupted;
  }
  figures.update(figures_of("best_test", best));
  if (average_) {
    const auto averaged = with_averages([&] { return judge_.at_the_end(); });
    figures.update(figures_of("ema_test", averaged));
    stopping = stopping || averaged.interrupted;
  }
  if (stopping) return std::nullopt;
  return figures;
}

void Trainer::average_weights() {
  if (!average_) return;
  const auto step_of_epoch = state_.step - state_.epoch * steps_per_epoch();
  if (step_of_epoch % parts_.settings.model_ema_steps != 0) return;
  average_->update();
  if (static_cast<double>(state_.epoch) < parts_.settings.lr_warmup_epochs) average_->start_again();
}

Evaluation Trainer::with_averages(const std::function<Evaluation()>& evaluation) {
  const KeptWeights kept(*parts_.model);
  average_->put_into_model();
  return evaluation();
}

void Trainer::keep_best(double top1) {
  if (state_.best_epoch > 0 && top1 <= state_.best_top1) return;
  state_.best_top1 = top1;
  state_.best_epoch = state_.epoch;
  // By the test set would be a choice made with what is to judge it.
  if (judge_.validates() && group_.is_first() && weights_finite()) {
    const auto weights = models::save_state_dict(*parts_.model);
    write_own_file(folder_.next_best(), {weights});
    best_sum_ = formats::crc32(weights);
  }
}

void Trainer::settle_best() {
  std::error_code unknown;
  if (stopped_ || !group_.is_first() || !std::filesystem::exists(folder_.next_best(), unknown)) return;
  put_in_place(folder_.next_best(), folder_.best());
}

bool Trainer::best_is_lost(const RunState& state) {
  if (!judge_.validates() || !best_sum_) return false;
  const auto holds = [&](const std::filesystem::path& file) {
    std::error_code unknown;
    return std::filesystem::exists(file, unknown) && formats::crc32(read_file(file)) == *best_sum_;
  };
  if (holds(folder_.next_best())) {
    put_in_place(folder_.next_best(), folder_.best());  // the run ended in between
  } else {
    std::error_code none;
    std::filesystem::remove(folder_.next_best(), none);  // of an epoch that is still to come
  }
  if (holds(folder_.best())) return false;
  if (state.best_epoch == state.epoch && state.batch == 0) {
    write_own_file(folder_.best(), {models::save_state_dict(*parts_.model)});
    return false;
  }
  std::error_code unknown;
  const auto what = fmt::format(
      "{} {}: the weights of epoch {}, the best by validation so far, are lost", folder_.best().string(),
      std::filesystem::exists(folder_.best(), unknown) ? "is of another epoch" : "is gone", state.best_epoch);
  if (state.epoch == parts_.settings.epochs) {
    fail("{}, and no epoch is left; the last weights are in {}", what, folder_.model().filename().string());
  }
  spdlog::warn("{}; from here on the best of the epochs to come is kept", what);
  return true;
}

}  // namespace sgdph::lab::train
