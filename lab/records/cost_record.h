#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "records/run_record.h"
#include "tables/statistics.h"

namespace sgdph::lab::records {

/// Peaks of a step in bytes, and relative to SGDM's: mean over a cycle of blocks, and the worst block. 0: unknown.
struct MemoryFigures {
  double mean = 0;
  double worst = 0;
  double relative_mean = 0;
  double relative_worst = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MemoryFigures, mean, worst, relative_mean, relative_worst)

/// A block: figures of the steps at which it was due. 0: not measured.
struct PositionRow {
  std::string block;
  int64_t depth = 0;  ///< from 1, in the network's order
  double ratio = 0;
  int64_t steps = 0;
  double held = 0;  ///< memory relative to SGDM
  double resident = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PositionRow, block, depth, ratio, steps, held, resident)

/// An engine on a workload.
struct CostRow {
  std::string model;
  int64_t batch_size = 0;
  std::string engine;
  std::string kernels;
  std::string note;  ///< why there are no figures
  tables::Figure seconds;
  tables::Figure ratio;  ///< to SGDM with the same layers
  MemoryFigures held;
  MemoryFigures resident;
  std::vector<PositionRow> positions;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    CostRow, model, batch_size, engine, kernels, note, seconds, ratio, held, resident, positions)

/// SGDM on the fast layers relative to SGDM on LibTorch's own.
struct KernelRow {
  std::string model;
  int64_t batch_size = 0;
  tables::Figure ratio;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KernelRow, model, batch_size, ratio)

/// All that `sgdph cost` measured.
struct CostReport : MachineFacts {
  std::string form;
  int64_t seed = 0;
  bool resident_known = true;
  std::vector<CostRow> rows;
  std::vector<KernelRow> fast_to_stock;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    CostReport, form, cpu, libtorch, version, started, threads, seed, resident_known, rows, fast_to_stock)

}  // namespace sgdph::lab::records
