#include "study/run_plan.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/text.h"
#include "records/run_log.h"
#include "records/run_record.h"
#include "settings/recipe.h"
#include "train/check_inputs.h"
#include "train/forecast.h"
#include "train/resolve.h"
#include "train/run_folder.h"

#include <fmt/format.h>

#include <algorithm>

namespace sgdph::lab::study {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(const StudyRun& run, const fs::path& config) {
  std::vector<std::string> words{own_program(), "train", "--progress", "machine", "--config", config.string()};
  if (train::RunFolder::holds_run(run.folder)) {
    words.insert(words.end(), {"--resume", run.folder.string()});
  } else {
    words.insert(words.end(), {"--output-dir", run.folder.string()});
  }
  return words;
}

/// What a run that is over came to.
std::string end_of(const StudyRun& run) {
  const auto record = records::read_run_record(run.folder);
  return fmt::format(
      "{}, test accuracy {:.2f} %, {}", record ? record->status : "no record", record ? record->top1 : 0.,
      duration_text(record ? record->train_seconds : 0));
}

}  // namespace

bool is_over(const StudyRun& run) {
  const auto record = records::read_run_record(run.folder);
  return record && record->over() &&
         (record->status != "finished" || static_cast<int64_t>(record->epochs.size()) >= run.settings.epochs);
}

void check_run_folder(const StudyRun& run, bool same_cost) {
  if (train::RunFolder::holds_run(run.folder)) {
    train::check_same_run(
        settings::read_stored_settings((run.folder / "settings.toml").string()), run.settings, same_cost);
    static_cast<void>(is_over(run));  // a record that cannot be read shows
    return;
  }
  // A new run would write over it.
  if (!is_over(run) && fs::exists(run.folder / records::kRunLog)) {
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

int run_study(
    const std::vector<StudyRun>& runs, const fs::path& scratch, const std::function<std::string()>& table_text) {
  const InterruptGuard guard;
  const auto to_do = std::count_if(runs.begin(), runs.end(), [](const StudyRun& run) { return !is_over(run); });
  Progress progress(ProgressStyle::Auto, static_cast<double>(std::max<int64_t>(1, to_do)));
  progress.above(table_text());
  int result = 0;
  for (size_t i = 0; i < runs.size() && !interrupted(); ++i) {
    const auto& run = runs[i];
    const auto name = fmt::format("[{}/{}] {}", i + 1, runs.size(), run.name);
    if (is_over(run)) {
      if (!progress.is_live()) progress.note(name + ": done before");
      continue;
    }
    progress.begin(name);
    if (train::RunFolder::in_use(run.folder)) {
      progress.note(name + ": failed: another process is working on it");
      result = 1;
      continue;
    }
    const auto config = scratch / fmt::format("{}.toml", run.folder.filename().string());
    write_file_atomically(config, {settings::to_toml(run.settings)});
    const auto end = run_process(words_of(run, config), [&](const auto& record) { progress.relay(record); });
    fs::remove(config);
    if (end.exit_code == kInterrupted || interrupted()) {
      result = kInterrupted;
      break;
    }
    progress.above(table_text());
    // A run that diverged has its record. Bad input would be the same for every run; other failures may not be.
    if (!is_over(run)) {
      result = 1;
      progress.note(fmt::format("{}: failed: {}", name, end.reason()));
    } else if (!progress.is_live()) {
      progress.note(fmt::format("{}: {}", name, end_of(run)));
    }
    if (end.exit_code == 2) throw UserError(fmt::format("{}: {}", run.name, end.reason()));
  }
  return interrupted() ? kInterrupted : result;
}

}  // namespace sgdph::lab::study
