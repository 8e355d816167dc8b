#include "reproduce/reproduce.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "records/run_log.h"
#include "reproduce/cost_experiment.h"
#include "study/run_study.h"
#include "train/resolve.h"
#include "train/run_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace sgdph::lab::reproduce {
namespace {

namespace fs = std::filesystem;

bool measures_cost(const ReproduceOptions& options) {
  return options.experiment.kind == ExperimentKind::Cost;
}

/// Two cells may be the same at desk scale: their run is done once.
bool is_planned(const std::vector<study::StudyRun>& runs, const fs::path& folder) {
  return std::any_of(runs.begin(), runs.end(), [&](const auto& run) { return run.folder == folder; });
}

/// The seeds that any run there has.
std::set<int64_t> seeds_in(const records::RunStore& store) {
  std::set<int64_t> seeds;
  static const std::string kMark = "-seed";
  for (const auto& file : store.files()) {
    const auto name = file.parent_path().string();
    const auto mark = name.rfind(kMark);
    if (mark == std::string::npos || file.filename() != records::kRunLog) continue;
    const auto seed = number_from<int64_t>(name.substr(mark + kMark.size()));
    if (seed && *seed >= 0) seeds.insert(*seed);
  }
  return seeds;
}

/// Of the cells that are planned or have a record.
ExperimentResult known_result(
    const Experiment& experiment, Selection selection, const records::RunStore& store,
    const std::set<std::vector<std::string>>& planned) {
  auto result = collect_result(experiment, selection, store, seeds_in(store));
  auto& cells = result.cells;
  const auto unknown = [&](const CellResult& cell) {
    return cell.runs.empty() && planned.count(cell.cell.values) == 0;
  };
  const auto all = cells.size();
  cells.erase(std::remove_if(cells.begin(), cells.end(), unknown), cells.end());
  if (cells.empty()) {
    fail("{}: no run of {} at {} scale", store.place().string(), experiment.name, to_string(selection.scale));
  }
  if (cells.size() < all) {
    result.notes.push_back(fmt::format("{} of the experiment's {} cells are not here", all - cells.size(), all));
  }
  selection.only.clear();
  for (auto& cell : cells) {
    if (planned.count(cell.cell.values) == 0) cell.planned = cell.runs.size();  // nothing more is known of it
    for (size_t i = 0; i < cell.cell.values.size(); ++i) {
      selection.only[experiment.axes[i].name].push_back(cell.cell.values[i]);
    }
  }
  const auto [fewest, most] = std::minmax_element(
      cells.begin(), cells.end(), [](const auto& a, const auto& b) { return a.planned < b.planned; });
  result.reductions = reductions(experiment, selection, fewest->planned, most->planned);
  compare_with_paper(result);
  return result;
}

/// All that is known of the experiment at this scale, so that a part of the grid does not replace the result of a
/// larger one: cells that were selected or have a record.
ExperimentResult whole_result(const ReproduceOptions& options) {
  auto whole = options;
  whole.selection.only.clear();
  if (measures_cost(options)) {
    const auto cost = cost_options_of(whole.experiment, whole.selection);
    return result_of(finished_cost_report(cost, whole.output_dir) ? whole : options);
  }
  std::set<std::vector<std::string>> selected;
  for (const auto& cell : cells_of(options.experiment, options.selection)) selected.insert(cell.values);
  return known_result(whole.experiment, whole.selection, *records::folder_of_runs(whole.output_dir), selected);
}

int measure(const ReproduceOptions& options) {
  const auto cost = cost_options_of(options.experiment, options.selection);
  if (finished_cost_report(cost, options.output_dir)) return 0;
  const auto [report, stopped] = cost::measure_cost(cost);
  if (stopped) return kInterrupted;
  const auto folder = cost_folder(cost, options.output_dir);
  make_writable_folder(folder);
  cost::write_cost_report(report, folder, false);
  return 0;
}

/// A line above the bar: a grid of dozens of cells would not fit on a terminal.
std::string progress_text(const std::vector<study::StudyRun>& runs) {
  const auto done = std::count_if(runs.begin(), runs.end(), [](const auto& run) { return study::is_over(run); });
  return fmt::format("{} of {} runs are done\n", done, runs.size());
}

/// How many of a cell's runs are planned and over, and the seconds of one that is not.
struct CellPlan {
  size_t runs = 0;
  size_t done = 0;
  double seconds = 0;
};

CellPlan plan_of_cell(const Cell& cell, const ReproduceOptions& options, const ReproducePlan& plan) {
  CellPlan result;
  for (const auto seed : seeds_of(options.experiment, options.selection)) {
    const auto folder = run_of(cell, seed, options.output_dir).folder;
    for (size_t i = 0; i < plan.runs.size(); ++i) {
      if (plan.runs[i].folder != folder) continue;
      ++result.runs;
      result.done += study::is_over(plan.runs[i]) ? 1 : 0;
      if (!plan.seconds.empty()) result.seconds = std::max(result.seconds, plan.seconds[i]);
    }
  }
  return result;
}

}  // namespace

ReproducePlan plan_experiment(const ReproduceOptions& options, bool only_look) {
  ReproducePlan plan;
  plan.cells = cells_of(options.experiment, options.selection);
  if (measures_cost(options)) {
    if (!options.selection.seeds.empty()) fail("--seeds: {} is a measurement and has none", options.experiment.name);
    const auto cost = cost_options_of(options.experiment, options.selection);
    plan.time_unknown =
        finished_cost_report(cost, options.output_dir)
            ? "done before"
            : fmt::format(
                  "{} of timing at least, after the memory of each optimizer", duration_text(cost.limit.seconds));
    return plan;
  }
  for (const auto seed : seeds_of(options.experiment, options.selection)) {
    for (const auto& cell : plan.cells) {
      auto run = run_of(cell, seed, options.output_dir);
      if (is_planned(plan.runs, run.folder)) continue;
      try {
        study::check_run_folder(run, false);
        plan.runs.push_back(std::move(run));
      } catch (const UserError& error) {
        plan.obstacles.push_back(fmt::format(
            "{}: left as it is: {}: {}; move the folder away to have it run anew", run.name,
            run.folder.filename().string(), error.what()));
      }
    }
  }
  try {
    const InterruptGuard guard;
    plan.seconds = study::forecast_seconds(plan.runs);
  } catch (const UserError& error) {
    if (!only_look) throw;
    plan.time_unknown = error.what();
  }
  return plan;
}

std::string plan_text(const ReproduceOptions& options, const ReproducePlan& plan) {
  const auto& experiment = options.experiment;
  const auto& selection = options.selection;
  auto text = fmt::format(
      "{}: {}{}{}\n", experiment.name, experiment.title, experiment.paper.empty() ? "" : "; ", experiment.paper);
  const auto reduced = reductions(experiment, selection);
  if (!reduced.empty()) text += fmt::format("Reductions of the desk scale: {}.\n", fmt::join(reduced, "; "));
  if (!reduced.empty() && !experiment.desk.why.empty()) text += experiment.desk.why + "\n";
  if (experiment.kind == ExperimentKind::Cost) {
    const auto& settings = plan.cells.front().settings;
    return text + fmt::format(
                      "{} scale: measures steps of {} in its {} form, batch {}: {}\n", to_string(selection.scale),
                      settings.model, settings.form, settings.batch_size, plan.time_unknown);
  }
  tables::Table table;
  table.columns = {"cell", "runs", "done", "a run takes"};
  for (const auto& cell : plan.cells) {
    const auto counts = plan_of_cell(cell, options, plan);
    const auto time = counts.seconds > 0 ? duration_text(counts.seconds) : counts.done == counts.runs ? "-" : "?";
    table.rows.push_back({cell.label, std::to_string(counts.runs), std::to_string(counts.done), time});
  }
  // Not the sum over cells, which may share runs.
  const auto done =
      std::count_if(plan.runs.begin(), plan.runs.end(), [](const auto& run) { return study::is_over(run); });
  double total = 0;
  for (const auto seconds : plan.seconds) total += seconds;
  text += tables::text_table(table);
  text += fmt::format(
      "{} scale: {} x {}; {}, {} done, {} to do", to_string(selection.scale), count_text(plan.cells.size(), "cell"),
      count_text(seeds_of(experiment, selection).size(), "seed"), count_text(plan.runs.size(), "run"), done,
      plan.runs.size() - static_cast<size_t>(done));
  total /= static_cast<double>(options.jobs);
  if (total > 0) text += fmt::format(", about {} on this machine", duration_text(total));
  text += "\n";
  if (!plan.time_unknown.empty()) text += fmt::format("time unknown: {}\n", plan.time_unknown);
  for (const auto& obstacle : plan.obstacles) text += obstacle + "\n";
  return text;
}

int run_experiment(const ReproduceOptions& options, const ReproducePlan& plan) {
  make_writable_folder(options.output_dir);
  int code = 0;
  if (measures_cost(options)) {
    code = measure(options);
  } else {
    try {
      auto runs = plan.runs;
      for (auto& run : runs) {
        const bool begun = train::RunFolder::holds_run(run.folder);
        if (options.jobs == 1 && !begun) continue;
        if (options.selection.options.count("threads") == 0) run.settings.threads = 0;
        study::keep_machine_of_begun(run.settings, run.folder);
        study::share_machine(run.settings, options.jobs);
        run.settings = train::resolve(std::move(run.settings));
      }
      code =
          study::run_study(runs, {options.output_dir, options.jobs, options.run}, [&] { return progress_text(runs); });
    } catch (const UserError&) {
      write_result(whole_result(options), options);
      throw;
    }
    if (code == 0 && !plan.obstacles.empty()) code = 1;
  }
  write_result(whole_result(options), options);
  return code;
}

ExperimentResult result_of(const ReproduceOptions& options) {
  if (!measures_cost(options)) {
    return collect_result(options.experiment, options.selection, *records::folder_of_runs(options.output_dir));
  }
  const auto cost = cost_options_of(options.experiment, options.selection);
  return collect_cost_result(options.experiment, options.selection, finished_cost_report(cost, options.output_dir));
}

ExperimentResult result_from_records(const ReproduceOptions& options, const fs::path& records) {
  if (measures_cost(options)) {
    fail("--records: {} is a measurement; 'sgdph report' shows its cost.json", options.experiment.name);
  }
  auto result = known_result(options.experiment, options.selection, *records::open_run_store(records), {});
  result.records = fs::absolute(records).lexically_relative(fs::absolute(options.output_dir)).lexically_normal();
  return result;
}

void write_result(const ExperimentResult& result, const ReproduceOptions& options) {
  const auto stem = options.output_dir / options.experiment.name;
  present(result).write(stem);
  if (!measures_cost(options)) write_own_file(stem.string() + "-curves.csv", {curves_csv(result)});
}

}  // namespace sgdph::lab::reproduce
