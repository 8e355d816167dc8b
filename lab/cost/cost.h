#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cost/engine.h"
#include "records/cost_record.h"

namespace sgdph::lab::cost {

/// When to stop: after so many rounds, or, if that is 0, when the time is used up and a few rounds are done.
struct TimeLimit {
  int64_t rounds = 0;
  double seconds = 0;
  bool every_position = false;  ///< without `rounds`: not before every block has had its turn
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimeLimit, rounds, seconds, every_position)

struct CostOptions {
  std::vector<std::string> models;
  std::string form = "cifar";
  std::vector<int64_t> batch_sizes;
  std::vector<Engine> engines;
  TimeLimit limit;
  bool memory = true;
  int64_t threads = 1;
  int64_t seed = 1;
};

/// Batch sizes and networks of the full sweep.
std::vector<int64_t> sweep_batch_sizes();
std::vector<std::string> sweep_models();

/// Refuses what cannot be measured, before anything runs.
void check_cost_options(const CostOptions& options);

struct CostResult {
  records::CostReport report;
  bool interrupted = false;  ///< then the report holds what was measured until then
};

/// Measures networks x batch sizes, each measurement in a process of its own, with progress on standard error; with
/// more than one workload an estimate of the time comes first.
CostResult measure_cost(const CostOptions& options);

/// cost.json, cost.md, cost.csv and cost.svg.
void write_cost_report(const records::CostReport& report, const std::filesystem::path& folder, bool positions);

}  // namespace sgdph::lab::cost
