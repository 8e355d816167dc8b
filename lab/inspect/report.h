#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/figures.h"
#include "inspect/verdict.h"
#include "tables/presentation.h"

namespace sgdph::lab {

/// What was looked at, and what was found.
struct InspectReport {
  std::string model, norm, dataset;
  double width = 1;
  std::string source;  ///< of the weights
  int64_t batch_size = 0;
  double loss = 0;
  std::string precision;
  std::string rule;
  int64_t refreshes = 0;
  int64_t probe_cycle = 0;
  double hessian_momentum = 0;
  int64_t seed = 0;
  int64_t products = 0;  ///< done
  double seconds = 0;
  int64_t planned = 0;  ///< blocks
  std::string cpu, libtorch, version, started;
  int64_t threads = 0;
  std::vector<BlockRow> rows;
  Verdict verdict;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    InspectReport, model, norm, dataset, width, source, batch_size, loss, precision, rule, refreshes, probe_cycle,
    hessian_momentum, seed, products, seconds, planned, cpu, libtorch, version, started, threads, rows, verdict)

/// For readers what was looked at, the blocks, the probes, the verdict. The flat table is of blocks. JSON has
/// everything, channel by channel.
Presentation present(const InspectReport& report);

}  // namespace sgdph::lab
