#include "records/run_record.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "records/run_log.h"
#include "settings/settings.h"

#include <algorithm>

namespace sgdph::lab::records {

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
  try {
    for (const auto& line : lines) {
      const auto type = line.at("type").get<std::string>();
      if (type == "header") {
        run.header = line;
      } else if (type == "epoch") {
        run.epochs.push_back(line);
        run.top1 = line.at("test_top1").get<double>();
        run.best_top1 = std::max(run.best_top1, run.top1);
      } else if (type == "eval") {
        run.evals.push_back(line);
      } else if (type == "end") {
        run.status = line.at("status").get<std::string>();
        run.train_seconds = line.at("cost").at("train_seconds").get<double>();
        run.peak_memory = line.at("cost").at("peak_memory_bytes").get<int64_t>();
      }
    }
  } catch (const nlohmann::json::exception& error) {
    fail("{}: a record of another version or damaged: {}", path.string(), error.what());
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
