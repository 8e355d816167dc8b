#include "cost/cost_row.h"

#include "tables/statistics.h"

#include <algorithm>
#include <map>
#include <vector>

namespace sgdph::lab::cost {
namespace {

using Peak = int64_t StepMemory::*;

double mean_peak(const EngineMemory& memory, Peak peak) {
  std::vector<tables::Sample> samples;
  int64_t positions = 1;  // the last block is always measured
  for (const auto& step : memory.steps) {
    samples.push_back({step.position, static_cast<double>(step.*peak)});
    positions = std::max(positions, step.position + 1);
  }
  return tables::cycle_estimate(samples, positions).value;
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
