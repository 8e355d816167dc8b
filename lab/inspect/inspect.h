#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "inspect/picture.h"
#include "inspect/report.h"
#include "inspect/subject.h"

namespace sgdph::lab::inspect {

struct InspectOptions {
  settings::Settings settings;
  optimizers::OptimizerValues estimates;  ///< of the running estimates, over those of the run
  SavedWeights weights;
  std::string blocks = "all";  ///< see `choose_blocks`
  bool every_1d = false;
  int64_t max_channels = 0;  ///< rows for each block; 0: all
  int64_t refreshes = 64;    ///< of the running estimates
  int64_t shards = 4;        ///< of the batch, between which curvature is compared; 0: none
  bool float64 = false;
  std::string picture;  ///< the block to draw; empty: a typical one
};

struct InspectResult {
  records::InspectReport report;
  std::vector<BlockView> views;  ///< as the report's rows
  size_t drawn = 0;              ///< the view for the picture
  bool interrupted = false;      ///< then the report holds what was measured until then
};

/// Looks at the Hessian blocks of a network on a batch.
class Inspection {
 public:
  /// Opens and checks everything; a UserError says what is wrong.
  explicit Inspection(InspectOptions options);

  /// States on standard error how many products there are and, from a timed one, about how long they take; then
  /// measures with progress there. Ends early, with what there is, when interrupted.
  InspectResult run();

 private:
  records::InspectReport blank_report() const;
  std::vector<LossFunction> shard_losses() const;

  InspectOptions options_;
  Subject subject_;
  std::vector<Block> blocks_;
  RunningEstimates estimates_;
};

/// inspect.json, inspect.md, inspect.csv and inspect.svg.
void write_inspect_report(const InspectResult& result, const std::filesystem::path& folder);

}  // namespace sgdph::lab::inspect
