#pragma once

#include "sgd_ph/blocks.h"

#include <optional>

namespace sgdph::sgd_ph {

/// Which blocks are refreshed for a step, and when a turn passes. It holds counts only, and the archive keeps them.
///
/// Under Refresh::Cyclic one block is refreshed per step, in turn. With members that stay, turn t is that of member
/// (t - 1) mod M, as published; members may change between turns. Under Refresh::Spread each of W ranks refreshes one:
/// a round takes ceil(M / W) steps.
class RefreshSchedule {
 public:
  struct Counts {
    int64_t step = 0;    ///< steps applied
    int64_t turns = 0;   ///< taken so far, without those of members that have left for good
    size_t cursor = 0;   ///< slot from which the next turn is sought
    int64_t waited = 0;  ///< times the turn has stayed because no loss reached what was due
  };

  RefreshSchedule() = default;
  explicit RefreshSchedule(const Counts& counts) : counts_(counts) {}
  const Counts& counts() const noexcept { return counts_; }

  /// Whether the authors' schedule is in force, for which their bias correction and start are followed.
  static bool is_published(const SGDPHOptions& options);

  /// The slots to measure for the step under way, ascending; under Refresh::Spread `ranks` at most.
  std::vector<size_t> due(const SGDPHOptions& options, const std::vector<Standing>& standings, int64_t ranks = 1) const;

  /// Called for every step before it is applied. The turn passes if its block could be measured (`measured`), or if
  /// there is nothing to measure because it belongs to a first-order parameter. If losses were measured but none
  /// reached what is due (not `reached`), it stays for as many steps as there are members: with losses that alternate,
  /// a rotation in step with them would never meet some blocks. Returns the slots that wait and have let a turn pass.
  std::vector<size_t> pass_turn(
      const SGDPHOptions& options, const std::vector<Standing>& standings, bool measured, int64_t ranks = 1,
      bool reached = true);
  /// Whether the last call of it has let the turn pass.
  bool has_passed() const noexcept { return has_passed_; }
  /// The block whose turn has passed leaves the rotation: its turn no longer counts, so that `exponent` stays that of
  /// the members left.
  void leave(const SGDPHOptions& options);
  /// One that waited joins it: `standings` are those without it. It counts as if it had always been there.
  void join(const SGDPHOptions& options, const std::vector<Standing>& standings);
  /// A step was applied.
  void count_step() { ++counts_.step; }

  /// Whether some members have not had their first turn, those from the cursor on.
  bool in_first_round(const std::vector<Standing>& standings) const;
  /// How many times as often as one a step in turn a block is refreshed under Refresh::Spread; else 1, since it is not
  /// asked what other schedules do.
  static double pace(const SGDPHOptions& options, const std::vector<Standing>& standings, int64_t ranks);
  /// The published exponent of the bias correction, floor(turns / M) + 1.
  int64_t exponent(const std::vector<Standing>& standings) const;

 private:
  bool is_refresh_step(const SGDPHOptions& options) const;
  std::optional<size_t> next(const std::vector<Standing>& standings) const;
  std::vector<size_t> next_neighbours(const std::vector<Standing>& standings, int64_t ranks) const;

  Counts counts_;
  bool has_passed_ = false;
};

}  // namespace sgdph::sgd_ph
