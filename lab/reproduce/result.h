#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "records/run_store.h"
#include "reproduce/cells.h"
#include "study/summary.h"
#include "tables/statistics.h"

namespace sgdph::lab::reproduce {

/// A cell with what was found and what the paper says.
struct CellResult {
  Cell cell;
  tables::Statistic ours;  ///< accuracy of the last epoch in per cent, or a multiple of SGDM's cost
  size_t planned = 0;
  size_t diverged = 0;
  std::optional<PaperFigure> paper;
  size_t rank = 0;  ///< among those of its group that are ranked, from 1; 0 if it is not
  size_t paper_rank = 0;
  std::vector<double> curve;             ///< test accuracy after each epoch, mean of the runs that reached it
  std::vector<records::RunRecord> runs;  ///< whose records are here

  std::optional<double> difference() const;
};

/// The ranking in a group of cells: those that differ on the ranked axis only.
struct GroupResult {
  std::string label;  ///< "cifar100, resnet18"; empty if there is one group
  std::vector<size_t> cells;
  size_t ranked = 0;    ///< cells with a figure, and one of the paper where it has any
  size_t diverged = 0;  ///< cells of which no run came to an end
  tables::RankAgreement agreement;
  std::string best;  ///< labels; empty if there is no figure
  std::string paper_best;
};

struct ExperimentResult {
  Experiment experiment;
  Scale scale = Scale::Desk;
  std::vector<std::string> reductions;
  std::vector<CellResult> cells;
  std::vector<GroupResult> groups;
  std::filesystem::path records;   ///< where the runs are, as seen from the tables; empty: beside them
  std::vector<std::string> notes;  ///< what a reader must know of the records: other versions, unreadable ones
};

/// What a result begins with: the experiment, its scale and reductions.
ExperimentResult result_without_cells(const Experiment& experiment, const Selection& selection);

/// Ours from the run records, and nothing else: it is rebuilt without training. Other seeds count in the cells that
/// have a record of them.
ExperimentResult collect_result(
    const Experiment& experiment, const Selection& selection, const records::RunStore& store,
    const std::set<int64_t>& other_seeds = {});

/// Ranks and groups of cells whose figures are there.
void compare_with_paper(ExperimentResult& result);

/// The label of a value of the ranked axis.
std::string ranked_label(const Experiment& experiment, const Cell& cell);

/// For readers a table for each group and what its ranking is. The flat table is of cells.
tables::Presentation present(const ExperimentResult& result);

/// Test accuracy by epoch of every run: the figures of the paper.
std::string curves_csv(const ExperimentResult& result);

}  // namespace sgdph::lab::reproduce
