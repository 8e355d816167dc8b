#pragma once

#include <sgdph/schema.h>

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

namespace sgdph::lab::optimizers {

/// Values of an optimizer's options by name.
using OptimizerValues = std::map<std::string, nlohmann::json>;

/// An optimizer of the library's catalogue as the lab offers it. Its options are the library's but for the seed, which
/// is the run's, and then the lab's own for optimizers of its kind.
struct OptimizerEntry {
  OptimizerInfo info;
  std::vector<OptionInfo> options;

  /// Null if there is none of this name.
  const OptionInfo* option(const std::string& name) const;
};

/// In the catalogue's order.
const std::vector<OptimizerEntry>& optimizer_entries();
std::vector<std::string> optimizer_names();
/// A UserError with the nearest name if there is none.
const OptimizerEntry& optimizer_entry(const std::string& name);
/// In tables; the name itself if there is no such optimizer (of a record from elsewhere, say).
std::string optimizer_label(const std::string& name);
/// The optimizer that times and memories are compared with.
const OptimizerEntry& baseline_optimizer();

/// Every option's value, given or by default; what is refused is a UserError.
OptimizerValues resolve_optimizer(const std::string& name, const OptimizerValues& given);

/// The library's part of resolved values, with the run's seed where the optimizer takes one.
OptionValues library_values(const std::string& name, const OptimizerValues& resolved, int64_t seed);

nlohmann::json json_of(const OptionValue& value);

/// A part of a batch: "1/8", "0.125" or "1". Anything else, or what is not above 0 and at most 1, is a UserError.
double batch_part_from_text(const std::string& text);

/// The one this project is about.
constexpr const char* kOwnOptimizer = "sgd-ph";

// The lab's own options.
constexpr const char* kCurvatureBatch = "curvature_batch";  ///< of optimizers that measure curvature
constexpr const char* kBlocks = "blocks";                   ///< of optimizers with blocks, as are the following
constexpr const char* kCurvatureControl = "curvature_control";
constexpr const char* kBlockMultiplier = "block_multiplier";

constexpr const char* kWholeBatch = "1";
constexpr const char* kBlocksByModule = "module";
// What stands in place of a block's curvature, to tell what the curvature contributes.
constexpr const char* kNoControl = "none";
constexpr const char* kBlockMean = "block-mean";         ///< its mean over the block
constexpr const char* kConstantMultiplier = "constant";  ///< what makes the multiplier lr_so / curvature a constant
/// Of a block whose curvature is lr_so: its step is as long as with SGDM.
constexpr double kPlainMultiplier = 1;

}  // namespace sgdph::lab::optimizers
