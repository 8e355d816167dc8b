#pragma once

#include "cost/measure.h"
#include "cost/memory.h"
#include "records/cost_record.h"

namespace sgdph::lab::cost {

/// The row of an engine from what was measured; either may be empty. `reference` is the memory of its SGDM.
records::CostRow make_row(
    const Workload& workload, const Engine& engine, const EngineTimes& times, const EngineMemory& memory,
    const EngineMemory& reference);

}  // namespace sgdph::lab::cost
