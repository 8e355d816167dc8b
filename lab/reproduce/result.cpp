#include "reproduce/result.h"

#include "base/error.h"
#include "study/run_record.h"
#include "train/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace sgdph::lab {
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

void add_curve(CellResult& result, std::vector<size_t>& counts, const RunRecord& record) {
  for (size_t i = 0; i < record.epochs.size(); ++i) {
    if (i >= result.curve.size()) {
      result.curve.push_back(0);
      counts.push_back(0);
    }
    result.curve[i] += record.epochs[i].at("test_top1").get<double>();
    ++counts[i];
  }
}

CellResult collect_cell(
    const Cell& cell, const std::vector<int64_t>& seeds, const std::filesystem::path& output_dir,
    std::vector<std::string>& notes) {
  CellResult result;
  result.cell = cell;
  std::vector<double> figures;
  std::vector<size_t> counts;
  for (const auto seed : seeds) {
    const auto run = run_of(cell, seed, output_dir);
    ++result.planned;
    result.folders.push_back(run.folder.string());
    std::optional<RunRecord> record;
    try {
      check_run_folder(run, false);
      record = read_run_record(run.folder);
    } catch (const UserError& error) {
      notes.push_back(fmt::format("{}: left out: {}", run.name, error.what()));
    }
    if (!record) continue;
    const auto version = record->header.value("version", std::string("unknown"));
    if (version != sgdph_version()) notes.push_back(fmt::format("{}: made by version {}", run.name, version));
    add_curve(result, counts, *record);
    result.diverged += record->status == "diverged" ? 1 : 0;
    // More epochs than planned are another experiment's.
    if (record->status == "finished" && static_cast<int64_t>(record->epochs.size()) == cell.settings.epochs) {
      figures.push_back(record->top1);
    }
  }
  for (size_t i = 0; i < counts.size(); ++i) result.curve[i] /= static_cast<double>(counts[i]);
  result.ours = statistic(figures);
  return result;
}

void rank_group(const ExperimentResult& result, GroupResult& group, std::vector<CellResult>& cells) {
  const bool highest_first = !lower_is_better(result.experiment);
  std::vector<size_t> measured;
  std::vector<size_t> published;
  std::vector<double> both_ours;
  std::vector<double> both_paper;
  const auto values = [&](const std::vector<size_t>& members, bool ours) {
    std::vector<double> list;
    for (const auto i : members) list.push_back(ours ? cells[i].ours.mean : *cells[i].paper->value);
    return list;
  };
  for (const auto i : group.cells) {
    const bool has_ours = cells[i].ours.count > 0;
    const bool has_paper = cells[i].paper && cells[i].paper->value;
    if (has_ours) measured.push_back(i);
    if (has_paper) published.push_back(i);
    if (!has_ours || !has_paper) continue;
    both_ours.push_back(cells[i].ours.mean);
    both_paper.push_back(*cells[i].paper->value);
  }
  const auto ours = ranks_of(values(measured, true), highest_first);
  const auto paper = ranks_of(values(published, false), highest_first);
  for (size_t k = 0; k < measured.size(); ++k) {
    cells[measured[k]].rank = ours[k];
    if (ours[k] == 1) {
      group.best += (group.best.empty() ? "" : ", ") + ranked_label(result.experiment, cells[measured[k]].cell);
    }
  }
  for (size_t k = 0; k < published.size(); ++k) {
    cells[published[k]].paper_rank = paper[k];
    if (paper[k] == 1) {
      group.paper_best +=
          (group.paper_best.empty() ? "" : ", ") + ranked_label(result.experiment, cells[published[k]].cell);
    }
  }
  group.agreement = rank_agreement(both_ours, both_paper);
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

ExperimentResult collect_result(
    const Experiment& experiment, const Selection& selection, const std::filesystem::path& output_dir) {
  ExperimentResult result;
  result.experiment = experiment;
  result.scale = selection.scale;
  result.reductions = reductions(experiment, selection);
  const auto seeds = seeds_of(experiment, selection);
  for (const auto& cell : cells_of(experiment, selection)) {
    result.cells.push_back(collect_cell(cell, seeds, output_dir, result.notes));
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

}  // namespace sgdph::lab
