#pragma once

#include <string>
#include <vector>

#include "cost/report.h"
#include "report/task.h"

namespace sgdph::lab {

struct TableCell {
  std::string text;
  bool strong = false;
  double bar = 0;  ///< length of a bar behind the figure, from 0 to 1
};

/// A table of a report, for the page and for text alike.
struct ReportTable {
  std::vector<std::string> columns;
  std::vector<std::vector<TableCell>> rows;
};

/// A row for each series: the table of `sgdph compare`, the reference and the difference beside it if there is one.
ReportTable result_table(const Task& task);
/// Every run: result, seed, versions, machine, date.
ReportTable run_table(const Task& task);
/// The settings in which series differ; a column each. Here and below without those that leave the result alone, which
/// say how and where on somebody's machine: data_path, workers, threads and so on.
ReportTable differing_settings(const Task& task);
/// The settings that all runs of the task share.
ReportTable shared_settings(const Task& task);
/// The engines of a workload.
ReportTable cost_table(const std::vector<const CostRow*>& rows);
/// An experiment of cost: ours beside the paper's.
ReportTable cost_comparison(const ExperimentTable& experiment);

}  // namespace sgdph::lab
