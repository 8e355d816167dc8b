#pragma once

#include <nlohmann/json.hpp>

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
/// The settings in which series differ; a column each.
ReportTable differing_settings(const Task& task);
/// The settings that all runs of the task share.
ReportTable shared_settings(const Task& task);
/// The engines of a workload.
ReportTable cost_table(const std::vector<const CostRow*>& rows);
/// Whatever an inspection says of its blocks: a column for each key.
ReportTable block_table(const nlohmann::ordered_json& blocks);
/// What stands beside the blocks: plain values.
ReportTable inspection_facts(const nlohmann::ordered_json& facts);
/// What an inspection concludes, in its own words; empty if it does not.
std::string verdict_text(const FoundInspection& inspection);

}  // namespace sgdph::lab
