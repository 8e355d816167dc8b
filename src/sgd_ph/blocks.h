#pragma once

#include <sgdph/sgd_ph.h>

#include "sgd_ph/module_blocks.h"

namespace sgdph::sgd_ph {

/// The optimizer-wide options in force.
const SGDPHOptions& shared_options(const SGDPH& optimizer);

/// A parameter's place in the optimizer, and what is known of it whatever the options are.
struct Slot {
  at::Tensor parameter;
  size_t group = 0;
  std::string name;
  bool named = false;      ///< false: the name is its place in the groups
  bool candidate = false;  ///< a block unless group option, "last" rule or guard say otherwise
  bool last = false;       ///< the last candidate
  std::string kind;        ///< what it is, for `partition`
  std::string local_name;
  std::weak_ptr<const torch::nn::Module> module;
};

/// The options of the slot's group.
const SGDPHOptions& options_of(const SGDPH& optimizer, const Slot& slot);

/// A block is absent, and it is said, once so many of its turns in a row have passed without a loss that reaches it.
constexpr int64_t kTurnsToMiss = 20;

/// What a parameter is at the moment.
struct Standing {
  bool block = false;       ///< takes the second-order step
  bool has_turn = false;    ///< a member of the rotation: measured if it is a block, else its turn passes
  const char* reason = "";  ///< what makes a candidate first-order, for `partition`
  bool look = false;        ///< first-order, but measured at its turn, to see whether it is to be a block
  bool absent = false;      ///< no loss has reached it for so long that its turn does not wait for one
  bool waits = false;       ///< first-order, out of the rotation, and to be looked at at a later turn
};

/// Which parameters are blocks, and why. Roles follow from options and states, which anybody may change, so they are
/// asked for anew and not kept.
class Blocks {
 public:
  /// Candidates are the 1-D parameters.
  Blocks() = default;
  /// `published`: candidates are the 1-D parameters, the last of which Rule::Reference excludes.
  Blocks(std::vector<ClassifiedParameter> parameters, bool published);

  /// Tells what these parameters are, which are to join the groups.
  void expect(std::vector<ClassifiedParameter> parameters);
  /// Brings the slots in line with the groups: what is known of a parameter stays; a new one is classified by its
  /// shape, or first-order where blocks go by more than that.
  void follow(const std::vector<torch::optim::OptimizerParamGroup>& groups);

  /// In optimizer order.
  const std::vector<Slot>& slots() const noexcept { return slots_; }
  /// One for each slot.
  std::vector<Standing> standings(const SGDPH& optimizer) const;
  Standing standing(const SGDPH& optimizer, size_t slot) const { return standing_of(optimizer, slots_[slot]); }
  Partition partition(const SGDPH& optimizer) const;

  /// What a classifier or selector is told of a slot. What holds the parameter stays alive with the pointer.
  static std::pair<ParameterInfo, std::shared_ptr<const torch::nn::Module>> info_of(const Slot& slot);

  /// What an archive keeps, one of each for every parameter of the groups, also one that has no slot yet.
  struct Record {
    bool by_module = false;           ///< no "last" is singled out
    std::vector<int64_t> candidates;  ///< 1 or 0
    std::vector<std::string> names;   ///< empty where there is none; none at all in version 0.1
    std::vector<std::string> kinds;   ///< none at all in version 0.1
  };
  Record record(const std::vector<torch::optim::OptimizerParamGroup>& groups) const;
  void restore(const Record& record);

 private:
  Standing standing_of(const SGDPH& optimizer, const Slot& slot) const;

  std::vector<Slot> slots_;
  bool published_ = true;
};

}  // namespace sgdph::sgd_ph
