#pragma once

#include <string>
#include <vector>

#include "records/cost_record.h"
#include "tables/presentation.h"

namespace sgdph::lab::cost {

/// The rows of one workload for readers, one line each.
tables::Table engine_table(const std::vector<const records::CostRow*>& rows);
/// The rows by workload, in the report's order.
std::vector<std::vector<const records::CostRow*>> by_workload(const records::CostReport& report);

/// For readers a table for each workload, and with `positions` one for each engine with blocks. The flat table is of
/// engines, or of blocks with `positions`.
tables::Presentation present(const records::CostReport& report, bool positions = false);

}  // namespace sgdph::lab::cost
