#include "study/compare.h"

#include "base/error.h"
#include "base/files.h"
#include "optimizers/options.h"
#include "study/run_study.h"
#include "train/resolve.h"

#include <fmt/format.h>

#include <algorithm>

namespace sgdph::lab::study {
namespace {

namespace fs = std::filesystem;

StudyRun study_run(const ComparedRun& run) {
  return {fmt::format("{}, seed {}", optimizers::optimizer_label(run.optimizer), run.seed), run.folder, run.settings};
}

/// Refuses a folder that holds the run of that name with other settings.
void check_folder(const ComparedRun& run, const fs::path& output_dir) {
  try {
    check_run_folder(study_run(run), true);
    const auto record = records::read_run_record(run.folder);
    if (record && static_cast<int64_t>(record->epochs.size()) > run.settings.epochs) {
      fail("it has {} epochs, more than {}", record->epochs.size(), run.settings.epochs);
    }
  } catch (const UserError& error) {
    fail(
        "{} holds another comparison ({}: {}); choose another --output-dir", output_dir.string(),
        run.folder.filename().string(), error.what());
  }
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
      auto settings = settings::combine(sources);
      train::check_given(options.sources.options, settings);
      keep_machine_of_begun(settings, run.folder);
      share_machine(settings, options.jobs);
      run.settings = train::resolve(std::move(settings));
      run.epochs = run.settings.epochs;
      check_folder(run, options.output_dir);
      plan.push_back(std::move(run));
    }
  }
  return plan;
}

int run_comparison(const CompareOptions& options) {
  const auto plan = plan_comparison(options);
  std::vector<StudyRun> runs;
  for (const auto& run : plan) runs.push_back(study_run(run));
  check_inputs(runs);
  make_writable_folder(options.output_dir);
  const std::vector<PlannedRun> planned{plan.begin(), plan.end()};
  const auto result = run_study(runs, {options.output_dir, options.jobs, options.run}, [&] {
    return tables::Document().table("", summary_table(summarise(planned))).text();
  });
  const auto rows = summarise(planned);
  present(rows).write(options.output_dir / "summary");
  // As of a single run: there is no figure to go by.
  const bool all_diverged = !rows.empty() && std::all_of(rows.begin(), rows.end(), [](const auto& row) {
    return row.diverged == row.planned;
  });
  return result == 0 && all_diverged ? 1 : result;
}

}  // namespace sgdph::lab::study
