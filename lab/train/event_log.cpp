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
  const auto figure = [&](const std::string& key) { return record.at(key).get<double>(); };
  const bool validated = record.contains("val_top1");
  const std::string key = validated ? "val_" : "test_";
  const std::string part = validated ? "validation" : "test";
  std::vector<formats::Scalar> figures{
      {"loss/train", figure("train_loss")},
      {"loss/" + part, figure(key + "loss")},
      {"accuracy/train", figure("train_top1")},
      {"accuracy/" + part, figure(key + "top1")},
      {"accuracy/" + part + "_top5", figure(key + "top5")},
      {"lr", figure("lr")},
      {"images_per_second", record.at("cost").at("images_per_second").get<double>()},
      {"epoch", figure("epoch")}};
  if (const auto averaged = "ema_" + key + "top1"; record.contains(averaged)) {
    figures.push_back({"accuracy/" + part + "_ema", figure(averaged)});
  }
  file_->append(time, step, figures);
  last_step_ = step;
}

}  // namespace sgdph::lab::train
