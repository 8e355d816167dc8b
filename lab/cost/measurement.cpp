#include "cost/measurement.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/process.h"
#include "base/progress.h"
#include "tables/statistics.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <vector>

namespace sgdph::lab::cost {
namespace {

Measurement measurement_from(const std::string& json) {
  try {
    return nlohmann::json::parse(json).get<Measurement>();
  } catch (const nlohmann::json::exception&) {
    fail("--task: is for the program itself, and this is none of its tasks");
  }
}

using Peak = int64_t StepMemory::*;

double mean_peak(const EngineMemory& memory, Peak peak) {
  std::vector<tables::Sample> samples;
  int64_t positions = 1;  // the last block is always measured
  for (const auto& step : memory.steps) {
    samples.push_back({step.position, static_cast<double>(step.*peak)});
    positions = std::max(positions, step.position + 1);
  }
  return tables::cycle_figure(samples, positions).value;
}

double worst_peak(const EngineMemory& memory, Peak peak) {
  int64_t worst = 0;
  for (const auto& step : memory.steps) worst = std::max(worst, step.*peak);
  return static_cast<double>(worst);
}

records::MemoryFigures figures_of(const EngineMemory& memory, const EngineMemory& reference, Peak peak) {
  records::MemoryFigures figures;
  figures.mean = mean_peak(memory, peak);
  figures.worst = worst_peak(memory, peak);
  const auto sgdm = worst_peak(reference, peak);
  if (sgdm > 0) {
    figures.relative_mean = figures.mean / sgdm;
    figures.relative_worst = figures.worst / sgdm;
  }
  return figures;
}

}  // namespace

int do_measurement(const std::string& json) {
  const auto measurement = measurement_from(json);
  std::vector<Engine> chosen;
  for (const auto& name : measurement.engines) chosen.push_back(engine(name));
  if (chosen.empty()) fail("--task: names no engine");
  // Where memory runs out, this process is the one to go.
  std::ofstream("/proc/self/oom_score_adj") << "1000";
  at::set_num_threads(static_cast<int>(measurement.threads));
  if (measurement.kind == "memory") {
    send_record({{"result", measure_memory(chosen.front(), measurement.workload, measurement.every_position)}});
    return 0;
  }
  const InterruptGuard guard;
  Progress progress(ProgressStyle::Machine);
  const auto times =
      time_engines(chosen, measurement.workload, measurement.limit, [&](double fraction, int64_t rounds) {
        progress.at(fraction, rounds > 0 ? fmt::format("round {}", rounds) : "");
      });
  send_record({{"result", times}});
  return interrupted() ? kInterrupted : 0;
}

MeasurementEnd run_measurement(const Measurement& measurement, Progress& progress) {
  MeasurementEnd end;
  const auto take = [&](const nlohmann::json& record) {
    if (record.contains("result")) end.result = record["result"];
    progress.relay(record);
  };
  const auto process = run_process({own_program(), "cost", "--task", nlohmann::json(measurement).dump()}, take);
  if (end.result.is_null()) end.error = process.reason();
  return end;
}

records::CostRow make_row(
    const Workload& workload, const Engine& engine, const EngineTimes& times, const EngineMemory& memory,
    const EngineMemory& reference) {
  records::CostRow row;
  row.model = workload.model;
  row.batch_size = workload.batch_size;
  row.engine = engine.name;
  row.kernels = to_string(engine.kernels);
  row.seconds = times.seconds();
  row.ratio = times.ratio();
  const auto positions = static_cast<int64_t>(times.blocks.size());
  row.held = figures_of(memory, reference, &StepMemory::held);
  row.resident = figures_of(memory, reference, &StepMemory::resident);
  std::map<int64_t, std::vector<double>> ratios;
  for (const auto& step : times.steps) ratios[step.position].push_back(step.seconds / step.reference);
  for (int64_t i = 0; i < positions; ++i) {
    records::PositionRow at;
    at.block = times.blocks[static_cast<size_t>(i)];
    at.depth = i + 1;
    at.ratio = tables::median(ratios[i]);
    at.steps = static_cast<int64_t>(ratios[i].size());
    for (const auto& step : memory.steps) {
      if (step.position != i) continue;
      const auto relative = [&](Peak peak) {
        const auto sgdm = worst_peak(reference, peak);
        return sgdm > 0 ? static_cast<double>(step.*peak) / sgdm : 0;
      };
      at.held = relative(&StepMemory::held);
      at.resident = relative(&StepMemory::resident);
    }
    if (at.steps > 0 || at.held > 0) row.positions.push_back(at);
  }
  return row;
}

}  // namespace sgdph::lab::cost
