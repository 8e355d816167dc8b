#pragma once

#include <string>
#include <vector>

#include "records/cost_record.h"
#include "tables/document.h"

namespace sgdph::lab::cost {

/// The rows of one workload for readers, one line each.
tables::Table engine_table(const std::vector<const records::CostRow*>& rows);
/// The rows by workload, in the report's order.
std::vector<std::vector<const records::CostRow*>> by_workload(const records::CostReport& report);

/// For readers a table for each workload, and with `positions` one for each engine with blocks. The flat table is of
/// engines, or of blocks with `positions`.
tables::Presentation present(const records::CostReport& report, bool positions = false);

/// How the time of a step relative to SGDM scales with the batch, as SVG: a panel for each network, a line for each
/// engine with its intervals, both axes logarithmic. Follows the reader's choice of light or dark.
std::string cost_picture(const records::CostReport& report);

}  // namespace sgdph::lab::cost
