#include "cost/task.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/process.h"
#include "base/progress.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <fstream>

namespace sgdph::lab::cost {
namespace {

CostTask task_from(const std::string& json) {
  try {
    return nlohmann::json::parse(json).get<CostTask>();
  } catch (const nlohmann::json::exception&) {
    fail("--task: is for the program itself, and this is none of its tasks");
  }
}

}  // namespace

int run_task(const std::string& json) {
  const auto task = task_from(json);
  std::vector<Engine> chosen;
  for (const auto& name : task.engines) chosen.push_back(engine(name));
  if (chosen.empty()) fail("--task: names no engine");
  // Where memory runs out, this process is the one to go.
  std::ofstream("/proc/self/oom_score_adj") << "1000";
  at::set_num_threads(static_cast<int>(task.threads));
  if (task.kind == "memory") {
    send_record({{"result", measure_memory(chosen.front(), task.workload, task.every_position)}});
    return 0;
  }
  const InterruptGuard guard;
  Progress progress(ProgressStyle::Machine);
  const auto times = time_engines(chosen, task.workload, task.limit, [&](double fraction, int64_t rounds) {
    progress.at(fraction, rounds > 0 ? fmt::format("round {}", rounds) : "");
  });
  send_record({{"result", times}});
  return interrupted() ? kInterrupted : 0;
}

TaskEnd run_task_process(const CostTask& task, Progress& progress) {
  TaskEnd end;
  const auto take = [&](const nlohmann::json& record) {
    if (record.contains("result")) end.result = record["result"];
    progress.relay(record);
  };
  const auto process = run_process({own_program(), "cost", "--task", nlohmann::json(task).dump()}, take);
  if (end.result.is_null()) end.error = process.reason();
  return end;
}

}  // namespace sgdph::lab::cost
