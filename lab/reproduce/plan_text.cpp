// What is shown before an experiment starts.

#include "base/text.h"
#include "reproduce/reproduce.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace sgdph::lab::reproduce {
namespace {

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

}  // namespace sgdph::lab::reproduce
