#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "cost/measure.h"
#include "cost/memory.h"

namespace sgdph::lab::cost {

/// A measurement in a process of its own: peak memories do not mix, and if memory does not suffice it ends alone.
struct CostTask {
  std::string kind = "time";  ///< or memory, of the first engine
  std::vector<std::string> engines;
  Workload workload;
  TimeLimit limit;
  bool every_position = false;
  int64_t threads = 1;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CostTask, kind, engines, workload, limit, every_position, threads)

/// In the child: does the task of this JSON and writes progress and result to standard output, as JSON lines. Returns
/// the exit code.
int run_task(const std::string& json);

struct TaskEnd {          // NOLINT(bugprone-exception-escape): the library's json moves without throwing
  nlohmann::json result;  ///< null if there is none
  std::string error;
};
/// In the parent. An interruption is handed on; a timing then gives what it has.
TaskEnd run_task_process(const CostTask& task, Progress& progress);

}  // namespace sgdph::lab::cost
