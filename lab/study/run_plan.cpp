#include "study/run_plan.h"

#include "base/error.h"
#include "records/run_log.h"
#include "records/run_record.h"
#include "settings/recipe.h"
#include "train/forecast.h"
#include "train/resolve.h"
#include "train/run_folder.h"

#include <algorithm>

namespace sgdph::lab::study {

namespace fs = std::filesystem;

bool is_over(const StudyRun& run) {
  const auto record = records::read_run_record(run.folder);
  return record && record->over() &&
         (record->status != "finished" || static_cast<int64_t>(record->epochs.size()) >= run.settings.epochs);
}

void check_run_folder(const StudyRun& run, bool same_cost) {
  // Looked for first: a process that begins the run meanwhile writes its settings before.
  const bool has_log = fs::exists(run.folder / records::kRunLog);
  if (train::RunFolder::holds_run(run.folder)) {
    train::check_same_run(
        settings::read_stored_settings((run.folder / "settings.toml").string()), run.settings, same_cost);
    static_cast<void>(is_over(run));  // a record that cannot be read shows
    return;
  }
  // A new run would write over it.
  if (has_log && !is_over(run)) {
    fail("{} has an unfinished record and no settings.toml to continue it with; move it away", run.folder.string());
  }
}

void check_same_settings(const StudyRun& run, const records::RunRecord& record) {
  const auto where = (record.folder / records::kRunLog).string();
  train::check_same_run(
      settings::settings_from_json(record.header.value("settings", nlohmann::json()), where), run.settings, false);
}

void check_inputs(const std::vector<StudyRun>& runs) {
  std::vector<settings::Settings> open;
  for (const auto& run : runs) {
    if (!is_over(run)) open.push_back(run.settings);
  }
  train::check_inputs(open);
}

std::vector<double> forecast_seconds(const std::vector<StudyRun>& runs) {
  std::vector<size_t> open;
  std::vector<train::TrainingAhead> ahead;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (is_over(runs[i])) continue;
    const auto record = records::read_run_record(runs[i].folder);
    const auto done = record ? static_cast<int64_t>(record->epochs.size()) : 0;
    open.push_back(i);
    ahead.push_back({runs[i].settings, std::max<int64_t>(0, runs[i].settings.epochs - done)});
  }
  const auto found = train::forecast_seconds(ahead);
  std::vector<double> seconds(runs.size());
  for (size_t i = 0; i < open.size(); ++i) seconds[open[i]] = found[i];
  return seconds;
}

}  // namespace sgdph::lab::study
