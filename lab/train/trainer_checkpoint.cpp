// What of a run goes into a checkpoint, and comes back out of it.

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "models/state_dict.h"
#include "train/trainer.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <sgdph/detail/finite.h>
#include <sgdph/schedulers.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <sstream>

namespace sgdph::lab::train {
namespace {

std::string archived(const Scheduler& schedule) {
  torch::serialize::OutputArchive archive;
  schedule.save(archive);
  std::ostringstream out;
  archive.save_to(out);
  return out.str();
}

void restore_schedule(Scheduler& schedule, const std::string& bytes) {
  std::istringstream in(bytes);
  torch::serialize::InputArchive archive;
  archive.load_from(in);
  schedule.load(archive);
}

// Dropout draws from LibTorch's generator.
std::string generator_state(const at::Device& device) {
  auto generator = at::globalContext().defaultGenerator(device);
  const auto state = generator.get_state();
  return {static_cast<const char*>(state.data_ptr()), static_cast<size_t>(state.numel())};
}

void restore_generator(const at::Device& device, const std::string& bytes) {
  auto state = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(state.data_ptr()));
  auto generator = at::globalContext().defaultGenerator(device);
  generator.set_state(state);
}

}  // namespace

void Trainer::restore(const formats::CheckpointFile& file) {
  const auto where = folder_.path().string();
  try {
    models::load_state_dict(*parts_.model, file.section("model", where), where);
    parts_.optimizer->load(file.section("optimizer", where));
    restore_schedule(*schedule_, file.section("schedule", where));
    restore_generator(device_, file.section("generator", where));
    if (average_) {
      average_->load(file.section(kAverageSection, where), file.meta.at("model_ema_updates").get<int64_t>(), where);
    }
    auto state = file.meta.at("state").get<RunState>();
    move_to_batches_of(state, file.meta.at("settings").value("batch_size", parts_.settings.batch_size));
    const auto& s = parts_.settings;
    if (state.epoch > s.epochs || (state.epoch == s.epochs && state.batch > 0)) {
      fail("--epochs: the run has done {} epochs already, more than {}", state.epoch, s.epochs);
    }
    auto records = file.meta.at("records").get<std::vector<nlohmann::json>>();
    if (file.meta.contains("best")) best_sum_ = file.meta.at("best").at("crc32").get<uint32_t>();
    last_lr_ = file.meta.value("last_lr", parts_.optimizer->lr());
    at_once_ = file.meta.value("side_by_side", int64_t{1});
    if (group_.agree("best", [&] { return nlohmann::json(best_is_lost(state)); }).get<bool>()) {
      state.best_epoch = 0;
      state.best_top1 = 0;
      best_sum_.reset();
    }
    state_ = state;
    auto whole = group_.agree("log", [&] { return nlohmann::json(finished_log(state, records.size())); })
                     .get<std::vector<nlohmann::json>>();
    if (!whole.empty()) {
      was_finished_ = true;
      return log_.take_over(std::move(whole));
    }
    auto& head = records.at(0);
    if (head.at("threads") != s.threads) {
      spdlog::warn(
          "the run had {} threads and now has {}: the last bits may differ", head.at("threads").dump(), s.threads);
      head["threads"] = s.threads;
    }
    head["settings"] = settings::to_json(s);
    note_ranks(head);
    folder_.replace_settings(s);
    log_.start(std::move(records));
  } catch (const c10::Error& error) {
    fail("{}: the checkpoint does not fit: {}", where, error.what_without_backtrace());
  } catch (const nlohmann::json::exception& error) {
    fail("{}: the checkpoint's header lacks something: {}", where, error.what());
  }
}

std::vector<nlohmann::json> Trainer::finished_log(const RunState& state, size_t records) const {
  if (state.epoch != parts_.settings.epochs || state.batch != 0) return {};
  try {
    auto whole = records::read_log(folder_.log());
    if (whole.size() != records + 1) return {};
    const auto& end = whole.back();
    const bool finished = end.value("type", "") == "end" && end.value("status", "") == "finished" &&
                          end.value("steps", int64_t{-1}) == state.step;
    return finished ? whole : std::vector<nlohmann::json>();
  } catch (const UserError&) {
    return {};  // the checkpoint has all but its end
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

void Trainer::move_to_batches_of(RunState& state, int64_t old_size) const {
  const auto size = parts_.settings.batch_size;
  if (old_size == size) return;
  // Steps have the same images with batches of another size on another number of ranks.
  state.batch = std::min((state.batch * old_size + size - 1) / size, train_loader_->batches());
}

std::string Trainer::save_checkpoint() {
  if (!weights_finite()) {
    diverge("a weight became non-finite");
    return "";
  }
  state_.peak_memory = std::max(state_.peak_memory, peak_memory_bytes());
  last_checkpoint_ = seconds_now();
  nlohmann::json meta{
      {"version", sgdph_version()},
      {"settings", settings::to_json(parts_.settings)},
      {"classes", parts_.data.train->classes()},
      {"state", state_},
      {"last_lr", last_lr_},
      {"side_by_side", at_once_},
      {"records", log_.records()}};
  if (best_sum_) meta["best"] = {{"epoch", state_.best_epoch}, {"crc32", *best_sum_}};
  const auto model = models::save_state_dict(*parts_.model);
  const auto optimizer = parts_.optimizer->save();
  const auto schedule = archived(*schedule_);
  const auto generator = generator_state(device_);
  formats::CheckpointSections sections{
      {"model", model}, {"optimizer", optimizer}, {"schedule", schedule}, {"generator", generator}};
  const auto average = average_ ? average_->save() : std::string();
  if (average_) {
    meta["model_ema_updates"] = average_->updates();
    sections.emplace_back(kAverageSection, average);
  }
  return folder_.add_checkpoint(state_.step, meta, sections, parts_.settings.keep_checkpoints).string();
}

bool Trainer::weights_finite() const {
  auto tensors = parts_.model->parameters();
  const auto buffers = parts_.model->buffers();
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  return detail::count_non_finite(tensors) == 0;
}

}  // namespace sgdph::lab::train
