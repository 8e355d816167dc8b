#include "records/run_record.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "records/run_log.h"
#include "settings/settings.h"

#include <algorithm>

namespace sgdph::lab::records {

namespace {

void take_epoch(RunRecord& run, const nlohmann::json& line) {
  run.epochs.push_back(line);
  run.validated = line.contains("val_top1");
  if (line.contains("ema_test_top1")) run.ema_top1 = line.at("ema_test_top1").get<double>();
  if (run.validated) {
    run.val_top1 = line.at("val_top1").get<double>();
    return;
  }
  run.tested = true;
  run.top1 = line.at("test_top1").get<double>();
  run.best_top1 = std::max(run.best_top1, run.top1);
}

/// A whole number of at least `least`, whatever another version may have put there.
int64_t number_in(const nlohmann::json& record, const char* key, int64_t least) {
  const auto found = record.is_object() ? record.value(key, nlohmann::json()) : nlohmann::json();
  return found.is_number_integer() ? std::max(least, found.get<int64_t>()) : least;
}

void take_header(RunRecord& run, const nlohmann::json& line) {
  run.header = line;
  run.threads = number_in(line, "threads", 0);
  run.side_by_side = number_in(line.value("settings", nlohmann::json()), "side_by_side", 1);
}

void take_end(RunRecord& run, const nlohmann::json& line) {
  run.status = line.at("status").get<std::string>();
  run.side_by_side = number_in(line.at("cost"), "side_by_side", run.side_by_side);
  run.train_seconds = line.at("cost").at("train_seconds").get<double>();
  run.peak_memory = line.at("cost").at("peak_memory_bytes").get<int64_t>();
  if (!run.validated || run.status != "finished") return;
  run.tested = true;
  run.top1 = line.at("test_top1").get<double>();
  run.best_top1 = line.at("best_test_top1").get<double>();
  if (line.contains("ema_test_top1")) run.ema_top1 = line.at("ema_test_top1").get<double>();
}

}  // namespace

nlohmann::json measured(const nlohmann::json& record, const std::string& figure) {
  const auto validated = record.find("val_" + figure);
  return validated != record.end() ? *validated : record.value("test_" + figure, nlohmann::json());
}

MachineFacts machine_facts(const std::string& libtorch, int64_t threads) {
  return {cpu_name(), libtorch, sgdph_version(), time_stamp(), threads};
}

std::string RunRecord::header_text(const char* key) const {
  const auto entry = header.value(key, nlohmann::json());
  return entry.is_null() ? "-" : settings::plain_text(entry);
}

RunRecord run_record(const std::vector<nlohmann::json>& lines, const std::filesystem::path& folder) {
  const auto path = folder / kRunLog;
  RunRecord run;
  run.folder = folder;
  size_t number = 0;
  try {
    for (const auto& line : lines) {
      ++number;
      const auto type = line.at("type").get<std::string>();
      if (type == "header") {
        take_header(run, line);
      } else if (type == "epoch") {
        take_epoch(run, line);
      } else if (type == "eval") {
        run.evals.push_back(line);
      } else if (type == "end") {
        const auto& peak = line.at("cost").at("peak_memory_bytes");
        if (!peak.is_number_integer()) fail("{}:{}: peak_memory_bytes is no whole number", path.string(), number);
        take_end(run, line);
      }
    }
  } catch (const nlohmann::json::exception& error) {
    fail("{}:{}: a record of another version or damaged: {}", path.string(), number, error.what());
  }
  if (run.header.is_null()) fail("{}: the log has no header", path.string());
  return run;
}

std::optional<RunRecord> read_run_record(const std::filesystem::path& folder) {
  const auto path = folder / kRunLog;
  if (!std::filesystem::exists(path)) return std::nullopt;
  const auto lines = read_log(path);
  if (lines.empty()) return std::nullopt;
  return run_record(lines, folder);
}

}  // namespace sgdph::lab::records
