#include "train/event_log.h"

#include "base/clock.h"
#include "base/files.h"

#include <algorithm>

namespace sgdph::lab::train {

EventLog::EventLog(std::filesystem::path folder) : folder_(std::move(folder)) {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (!formats::is_event_file(entry.path())) continue;
    const auto step = formats::last_event_step(read_file(entry.path()));
    if (step) last_step_ = std::max(last_step_.value_or(*step), *step);
  }
}

void EventLog::catch_up(const std::vector<nlohmann::json>& records) {
  const auto now = seconds_since_1970();
  auto time = now;
  for (const auto& record : records) {
    if (record.at("type") == "header") time = seconds_of_stamp(record.value("started", "")).value_or(now);
    if (record.at("type") != "epoch") continue;
    const auto& cost = record.at("cost");
    time += cost.value("train_seconds", 0.) + cost.value("test_seconds", 0.);
    write_at(std::min(time, now), record);
  }
}

void EventLog::write(const nlohmann::json& record) {
  write_at(seconds_since_1970(), record);
}

void EventLog::write_at(double time, const nlohmann::json& record) {
  if (record.at("type") != "epoch") return;
  const auto step = record.at("step").get<int64_t>();
  if (last_step_ && step <= *last_step_) return;
  if (!file_) file_.emplace(folder_, seconds_since_1970());
  const auto figure = [&](const char* key) { return record.at(key).get<double>(); };
  file_->append(
      time, step,
      {{"loss/train", figure("train_loss")},
       {"loss/test", figure("test_loss")},
       {"accuracy/train", figure("train_top1")},
       {"accuracy/test", figure("test_top1")},
       {"accuracy/test_top5", figure("test_top5")},
       {"lr", figure("lr")},
       {"images_per_second", record.at("cost").at("images_per_second").get<double>()},
       {"epoch", figure("epoch")}});
  last_step_ = step;
}

}  // namespace sgdph::lab::train
