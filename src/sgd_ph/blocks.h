#pragma once

#include <sgdph/sgd_ph.h>

namespace sgdph::sgd_ph {

/// The optimizer-wide options in force.
const SGDPHOptions& shared_options(const SGDPH& optimizer);

/// A parameter's place in the optimizer, and what is known of it whatever the options are.
struct Slot {
  at::Tensor parameter;
  size_t group = 0;
  std::string name;
  bool candidate = false;  ///< a block unless group option, "last" rule or guard say otherwise
  bool last = false;       ///< the last candidate
  std::string kind;        ///< what it is, for `partition`
};

/// The options of the slot's group.
const SGDPHOptions& options_of(const SGDPH& optimizer, const Slot& slot);

/// What a parameter is at the moment.
struct Role {
  bool block = false;       ///< takes the second-order step
  bool has_turn = false;    ///< takes part in refreshes: measured if it is a block, else its turn passes
  const char* reason = "";  ///< what makes a candidate first-order, for `partition`
};

/// Which parameters are blocks, and why. Roles follow from options and states, which anybody may change, so they are
/// asked for anew and not kept.
class Blocks {
 public:
  /// Candidates are the 1-D parameters.
  Blocks() = default;
  /// Candidates are chosen by module type.
  explicit Blocks(const torch::nn::Module& module);

  /// Brings the slots in line with the groups: what is known of a parameter stays; a new one is classified by its
  /// shape.
  void follow(const std::vector<torch::optim::OptimizerParamGroup>& groups);

  /// In optimizer order.
  const std::vector<Slot>& slots() const noexcept { return slots_; }
  /// One for each slot.
  std::vector<Role> roles(const SGDPH& optimizer) const;
  Partition partition(const SGDPH& optimizer) const;

  // For the archive.
  bool by_module() const noexcept { return by_module_; }
  /// Whether each parameter of the groups is a candidate, also one that has no slot yet.
  std::vector<int64_t> candidates(const std::vector<torch::optim::OptimizerParamGroup>& groups) const;
  void restore(bool by_module, const std::vector<int64_t>& candidates);

 private:
  Role role_of(const SGDPH& optimizer, const Slot& slot) const;

  std::vector<Slot> slots_;
  bool by_module_ = false;
};

}  // namespace sgdph::sgd_ph
