#include "cost/task.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/process.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstdio>
#include <fstream>

namespace sgdph::lab {
namespace {

void print_record(const nlohmann::json& record) {
  fmt::print("{}\n", record.dump());
  std::fflush(stdout);
}

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
    print_record({{"result", measure_memory(chosen.front(), task.workload, task.every_position)}});
    return 0;
  }
  const InterruptGuard guard;
  const auto times = time_engines(chosen, task.workload, task.limit, [](double fraction, int64_t rounds) {
    print_record({{"fraction", fraction}, {"rounds", rounds}});
  });
  print_record({{"result", times}});
  return interrupted() ? kInterrupted : 0;
}

TaskEnd run_task_process(const CostTask& task, const ReportProgress& progress) {
  TaskEnd end;
  const auto take = [&](const std::string& line) {
    const auto record = nlohmann::json::parse(line, nullptr, false);
    if (!record.is_object()) return;
    if (record.contains("result")) {
      end.result = record["result"];
    } else if (record.contains("fraction")) {
      progress(record["fraction"], record["rounds"]);
    }
  };
  const auto process = run_process({own_program(), "cost", "--task", nlohmann::json(task).dump()}, take);
  if (end.result.is_null()) end.error = process.reason();
  return end;
}

}  // namespace sgdph::lab
