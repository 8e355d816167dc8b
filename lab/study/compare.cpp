#include "study/compare.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "config/optimizer_table.h"
#include "study/live_table.h"
#include "study/process.h"
#include "train/run_folder.h"
#include "train/setup.h"
#include "train/trainer.h"

#include <fmt/format.h>

namespace sgdph::lab {
namespace {

namespace fs = std::filesystem;

/// Diverged, or finished with as many epochs as are planned.
bool is_over(const ComparedRun& run) {
  const auto record = read_run_record(run.folder);
  return record && record->over() &&
         (record->status != "finished" || static_cast<int64_t>(record->epochs.size()) >= run.settings.epochs);
}

/// Opens the data and builds the network and every optimizer once, so that bad input shows before anything is written.
void check_inputs(const std::vector<ComparedRun>& plan) {
  std::optional<RunParts> parts;
  for (const auto& run : plan) {
    if (is_over(run)) continue;
    if (!parts) parts = prepare_run(run.settings);
    make_optimizer(*parts->model, run.settings);
  }
}

/// Refuses a folder that holds the run of that name with other settings.
void check_folder(const ComparedRun& run, const fs::path& output_dir) {
  if (!RunFolder::holds_run(run.folder)) return;
  try {
    check_same_run(combine({{read_recipe((run.folder / "settings.toml").string())}, {}}), run.settings, true);
  } catch (const UserError& error) {
    fail(
        "{} holds another comparison ({}: {}); choose another --output-dir", output_dir.string(),
        run.folder.filename().string(), error.what());
  }
}

std::vector<std::string> words_of(const ComparedRun& run, const fs::path& config) {
  std::vector<std::string> words{own_program(), "train", "--progress", "machine", "--config", config.string()};
  if (RunFolder::holds_run(run.folder)) {
    words.insert(words.end(), {"--resume", run.folder.string()});
  } else {
    words.insert(words.end(), {"--output-dir", run.folder.string()});
  }
  return words;
}

void write_summaries(const std::vector<SummaryRow>& rows, const fs::path& folder) {
  write_file_atomically(folder / "summary.txt", {render(rows, TableFormat::Text)});
  write_file_atomically(folder / "summary.md", {render(rows, TableFormat::Markdown)});
  write_file_atomically(folder / "summary.csv", {render(rows, TableFormat::Csv)});
  write_file_atomically(folder / "summary.json", {render(rows, TableFormat::Json)});
}

std::vector<PlannedRun> planned(const std::vector<ComparedRun>& runs) {
  return {runs.begin(), runs.end()};
}

}  // namespace

std::vector<ComparedRun> plan_comparison(const CompareOptions& options) {
  std::vector<ComparedRun> plan;
  for (const auto seed : options.seeds) {
    for (const auto& optimizer : options.optimizers) {
      auto sources = options.sources;
      sources.options["opt"] = {optimizer, "--opts"};
      sources.options["seed"] = {seed, "--seeds"};
      ComparedRun run;
      run.optimizer = optimizer;
      run.seed = seed;
      run.folder = options.output_dir / fmt::format("{}-seed{}", optimizer, seed);
      run.settings = resolve(combine(sources));
      check_folder(run, options.output_dir);
      plan.push_back(std::move(run));
    }
  }
  return plan;
}

int run_comparison(const CompareOptions& options) {
  const auto plan = plan_comparison(options);
  check_inputs(plan);
  make_writable_folder(options.output_dir);
  const InterruptGuard guard;
  LiveTable table(planned(plan));
  int result = 0;
  for (size_t i = 0; i < plan.size() && !interrupted(); ++i) {
    const auto& run = plan[i];
    if (is_over(run)) {
      table.skip(i);
      continue;
    }
    const auto config = options.output_dir / fmt::format("{}.toml", run.folder.filename().string());
    write_file_atomically(config, {to_toml(run.settings)});
    table.begin(i);
    const auto end = run_process(words_of(run, config), [&](const std::string& line) { table.update(i, line); });
    fs::remove(config);
    if (end.exit_code == kInterrupted || interrupted()) {
      result = kInterrupted;
      break;
    }
    const bool over = is_over(run);
    table.end(i, over ? "" : end.reason());
    // A run that diverged has its record. Bad input would be the same for every run; other failures may not be.
    if (end.exit_code == 2) {
      table.close();
      throw UserError(fmt::format("{}, seed {}: {}", run.optimizer, run.seed, end.reason()));
    }
    if (!over) result = 1;
  }
  if (interrupted()) result = kInterrupted;
  table.close();
  const auto rows = summarise(planned(plan));
  write_summaries(rows, options.output_dir);
  return result;
}

}  // namespace sgdph::lab
