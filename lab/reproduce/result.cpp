#include "reproduce/result.h"

#include "base/error.h"
#include "base/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace sgdph::lab::reproduce {
namespace {

bool lower_is_better(const Experiment& experiment) {
  return experiment.kind == ExperimentKind::Cost;
}

size_t ranked_axis(const Experiment& experiment) {
  const auto names = experiment.axis_names();
  return static_cast<size_t>(std::find(names.begin(), names.end(), experiment.ranked) - names.begin());
}

/// The labels of all axes but the ranked one.
std::string group_label(const Experiment& experiment, const Cell& cell) {
  const auto ranked = ranked_axis(experiment);
  std::string label;
  for (size_t i = 0; i < cell.values.size(); ++i) {
    if (i != ranked) label += (label.empty() ? "" : ", ") + cell.values[i];
  }
  return label;
}

/// Test accuracy after each epoch, mean of the runs that reached it.
std::vector<double> mean_curve(const std::vector<records::RunRecord>& runs) {
  std::vector<std::vector<double>> epochs;
  for (const auto& run : runs) {
    epochs.resize(std::max(epochs.size(), run.epochs.size()));
    for (size_t i = 0; i < run.epochs.size(); ++i)
      epochs[i].push_back(records::measured(run.epochs[i], "top1").get<double>());
  }
  std::vector<double> curve;
  for (const auto& figures : epochs) curve.push_back(tables::statistic(figures).mean);
  return curve;
}

/// Of the seeds that are planned, and of others that have a record.
CellResult collect_cell(
    const Cell& cell, const std::vector<int64_t>& planned, const std::set<int64_t>& others,
    const records::RunStore& store, std::vector<std::string>& notes) {
  CellResult result;
  result.cell = cell;
  result.planned = planned.size();
  std::vector<double> figures;
  auto seeds = others;
  seeds.insert(planned.begin(), planned.end());
  for (const auto seed : seeds) {
    const auto run = run_of(cell, seed, store.place());
    std::optional<records::RunRecord> record;
    try {
      if (!store.is_packed()) study::check_run_folder(run, false);
      auto found = store.record(run.folder.filename());
      if (found && store.is_packed()) study::check_same_settings(run, *found);
      record = std::move(found);
    } catch (const UserError& error) {
      notes.push_back(fmt::format("{}: left out: {}", run.name, error.what()));
    }
    if (!record) continue;
    const bool finished = record->status == "finished";
    if (finished && static_cast<int64_t>(record->epochs.size()) != cell.settings.epochs) {
      // It was continued by hand, and is another experiment's.
      notes.push_back(fmt::format(
          "{}: left out: it has {} epochs, planned are {}", run.name, record->epochs.size(), cell.settings.epochs));
      continue;
    }
    if (std::find(planned.begin(), planned.end(), seed) == planned.end()) ++result.planned;
    const auto version = record->header_text("version");
    if (version != sgdph_version()) notes.push_back(fmt::format("{}: made by version {}", run.name, version));
    result.diverged += record->status == "diverged" ? 1 : 0;
    if (finished) figures.push_back(record->top1);
    result.runs.push_back(std::move(*record));
  }
  result.curve = mean_curve(result.runs);
  result.ours = tables::statistic(figures);
  return result;
}

/// Ranks of the cells by a figure; returns the labels of the first.
std::string rank_cells(
    const ExperimentResult& result, std::vector<CellResult>& cells, const std::vector<size_t>& members,
    const std::vector<double>& figures, size_t CellResult::*rank) {
  const auto ranks = tables::ranks_of(figures, !lower_is_better(result.experiment));
  std::string best;
  for (size_t k = 0; k < members.size(); ++k) {
    cells[members[k]].*rank = ranks[k];
    if (ranks[k] == 1) best += (best.empty() ? "" : ", ") + ranked_label(result.experiment, cells[members[k]].cell);
  }
  return best;
}

/// Where the paper has figures, over the cells that have both, so that the ranks can be compared.
void rank_group(const ExperimentResult& result, GroupResult& group, std::vector<CellResult>& cells) {
  const auto has_paper = [&](size_t i) { return cells[i].paper && cells[i].paper->value; };
  const bool published = std::any_of(group.cells.begin(), group.cells.end(), has_paper);
  std::vector<size_t> members;
  std::vector<double> ours;
  std::vector<double> paper;
  for (const auto i : group.cells) {
    group.diverged += cells[i].ours.count == 0 && cells[i].diverged > 0 ? 1 : 0;
    if (cells[i].ours.count == 0 || (published && !has_paper(i))) continue;
    members.push_back(i);
    ours.push_back(cells[i].ours.mean);
    if (published) paper.push_back(*cells[i].paper->value);
  }
  group.ranked = members.size();
  group.best = rank_cells(result, cells, members, ours, &CellResult::rank);
  if (!published) return;
  group.paper_best = rank_cells(result, cells, members, paper, &CellResult::paper_rank);
  group.agreement = tables::rank_agreement(ours, paper);
}

}  // namespace

std::optional<double> CellResult::difference() const {
  if (ours.count == 0 || !paper || !paper->value) return std::nullopt;
  return ours.mean - *paper->value;
}

std::string ranked_label(const Experiment& experiment, const Cell& cell) {
  const auto& value = cell.values[ranked_axis(experiment)];
  for (const auto& known : experiment.axis(experiment.ranked).values) {
    if (known.name == value) return known.label;
  }
  return value;
}

ExperimentResult result_without_cells(const Experiment& experiment, const Selection& selection) {
  ExperimentResult result;
  result.experiment = experiment;
  result.scale = selection.scale;
  result.reductions = reductions(experiment, selection);
  return result;
}

ExperimentResult collect_result(
    const Experiment& experiment, const Selection& selection, const records::RunStore& store,
    const std::set<int64_t>& other_seeds) {
  auto result = result_without_cells(experiment, selection);
  const auto seeds = seeds_of(experiment, selection);
  for (const auto& cell : cells_of(experiment, selection)) {
    result.cells.push_back(collect_cell(cell, seeds, other_seeds, store, result.notes));
  }
  compare_with_paper(result);
  return result;
}

void compare_with_paper(ExperimentResult& result) {
  result.groups.clear();
  for (size_t i = 0; i < result.cells.size(); ++i) {
    auto& cell = result.cells[i];
    const auto found = result.experiment.figures.find(cell.cell.values);
    if (found != result.experiment.figures.end()) cell.paper = found->second;
    const auto label = group_label(result.experiment, cell.cell);
    auto group = std::find_if(
        result.groups.begin(), result.groups.end(), [&](const auto& known) { return known.label == label; });
    if (group == result.groups.end()) {
      result.groups.emplace_back();
      group = result.groups.end() - 1;
      group->label = label;
    }
    group->cells.push_back(i);
  }
  for (auto& group : result.groups) rank_group(result, group, result.cells);
}

}  // namespace sgdph::lab::reproduce
