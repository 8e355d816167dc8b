// What a run says of itself: in its log, and to those who watch it.

#include "base/clock.h"
#include "base/machine.h"
#include "base/text.h"
#include "models/models.h"
#include "records/run_record.h"
#include "train/libtorch.h"
#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>

namespace sgdph::lab::train {
namespace {

double percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

nlohmann::json Trainer::header() const {
  nlohmann::json header = records::machine_facts(libtorch_version(), parts_.settings.threads);
  header.update(
      {{"type", "header"},
       {"seed", parts_.settings.seed},
       {"parameters", models::count_parameters(*parts_.model)},
       {"train_images", train_loader_->images()},
       {"test_images", judge_.test_images()},
       {"settings", settings::to_json(parts_.settings)}});
  if (judge_.validates()) header["validation_images"] = judge_.validation_images();
  note_ranks(header);
  return header;
}

void Trainer::note_ranks(nlohmann::json& header) const {
  for (const auto* key : {"ranks", "hosts", "last_batches"}) header.erase(key);
  if (group_.alone()) return;
  header["ranks"] = group_.size();
  header["hosts"] = group_.hosts();
  header["last_batches"] = "exact: every image of an epoch counts once, by its share of the step";
}

nlohmann::json Trainer::rank_costs() {
  const auto waited = group_.gather(group_.waited() - waited_before_);
  waited_before_ = group_.waited();
  auto costs = nlohmann::json::array();
  const auto hosts = group_.hosts();
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    costs.push_back({{"rank", rank}, {"host", hosts[rank]}, {"waiting_seconds", waited[rank]}});
  }
  return costs;
}

nlohmann::json Trainer::epoch_record(const nlohmann::json& judged, double seconds) const {
  const auto seen = static_cast<double>(state_.seen);
  nlohmann::json record{
      {"type", "epoch"},
      {"epoch", state_.epoch},
      {"step", state_.step},
      {"lr", last_lr_},
      {"train_loss", state_.loss_sum / seen},
      {"train_top1", percent(state_.correct, state_.seen)},
      {"skipped_steps", state_.skipped},
      {"damaged_images", train_loader_->images() - state_.seen},
      {"cost",
       {{"train_seconds", state_.seconds},
        {"test_seconds", seconds},
        {"images_per_second", seen / state_.seconds},
        {"peak_memory_bytes", peak_memory_bytes()}}}};
  record.update(judged);
  return record;
}

nlohmann::json Trainer::whole_cost(double seconds) const {
  return {
      {"train_seconds", seconds},
      {"peak_memory_bytes", std::max(state_.peak_memory, peak_memory_bytes())},
      {"side_by_side", std::max(at_once_, parts_.settings.side_by_side)}};
}

void Trainer::say_epoch(const nlohmann::json& record) const {
  const auto figure = [&](const std::string& key) { return record.at(key).get<double>(); };
  const auto averaged = average_ ? fmt::format("  EMA {:5.2f} %", figure("ema_" + judge_.key() + "_top1")) : "";
  progress_.line(fmt::format(
      "epoch {:{}}/{}  train loss {:.4f}  acc {:5.2f} %   {} loss {:.4f}  acc {:5.2f} % (best {:.2f}){}   {:.1f} s",
      state_.epoch, std::to_string(parts_.settings.epochs).size(), parts_.settings.epochs, figure("train_loss"),
      figure("train_top1"), judge_.word(), figure(judge_.key() + "_loss"), figure(judge_.key() + "_top1"),
      state_.best_top1, averaged, state_.seconds));
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

void Trainer::note_if_slowed() {
  // What ranks wait for one another stands in the log by itself.
  if (!group_.alone()) return;
  const auto part = core_watch_.slowed(seconds_now());
  const auto& records = log_.records();
  const auto told = [](const nlohmann::json& record) { return record.at("type") == "slowed"; };
  if (!part || std::any_of(records.begin(), records.end(), told)) return;
  const auto& s = parts_.settings;
  progress_.note(fmt::format(
      "the run waits for a core {:.0f} % of its time: it has {} on {}, and others work there too; give each its share "
      "with --threads, or compare with --jobs",
      100 * *part, count_text(static_cast<size_t>(s.threads), "thread"),
      count_text(static_cast<size_t>(core_count()), "core")));
  log_.append(
      {{"type", "slowed"}, {"step", state_.step}, {"waited", *part}, {"threads", s.threads}, {"cores", core_count()}});
}

void Trainer::count_neighbours() {
  constexpr double kBetweenLooks = 0.5;  // seconds
  if (!group_.is_first() || seconds_now() - neighbours_seen_ < kBetweenLooks) return;
  neighbours_seen_ = seconds_now();
  at_once_ = std::max(at_once_, RunFolder::at_once(folder_.path()));
}

void Trainer::diverge(const std::string& what) {
  if (stopped_) return;
  stopped_ = RunEnd::Diverged;
  // A checkpoint is known to be good when a step after it had a finite loss.
  std::string good = "none yet";
  const bool has_folder = group_.is_first();
  for (const auto& [step, path] : has_folder ? numbered_checkpoints(folder_.path()) : NumberedCheckpoints()) {
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
       {"cost", whole_cost(state_.train_seconds + state_.seconds)}});
}

}  // namespace sgdph::lab::train
