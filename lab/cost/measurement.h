#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "cost/memory.h"
#include "cost/timing.h"
#include "records/cost_record.h"

namespace sgdph::lab::cost {

/// A measurement in a process of its own: peak memories do not mix, and if memory does not suffice it ends alone.
struct Measurement {
  std::string kind = "time";  ///< or memory, of the first engine
  std::vector<std::string> engines;
  Workload workload;
  TimeLimit limit;
  bool every_position = false;
  int64_t threads = 1;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Measurement, kind, engines, workload, limit, every_position, threads)

/// In the child: does the measurement of this JSON and writes progress and result to standard output, as JSON lines.
/// Returns the exit code.
int do_measurement(const std::string& json);

struct MeasurementEnd {   // NOLINT(bugprone-exception-escape): the library's json moves without throwing
  nlohmann::json result;  ///< null if there is none
  std::string error;
};
/// In the parent. An interruption is handed on; a timing then gives what it has.
MeasurementEnd run_measurement(const Measurement& measurement, Progress& progress);

/// The row of an engine from what was measured; either may be empty. `reference` is the memory of its SGDM.
records::CostRow make_row(
    const Workload& workload, const Engine& engine, const EngineTimes& times, const EngineMemory& memory,
    const EngineMemory& reference);

}  // namespace sgdph::lab::cost
