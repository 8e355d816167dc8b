#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sgdph::detail {

/// Whose turn it is when one block is refreshed per step. Members are positions in optimizer order, ascending; they may
/// change between turns. With members that stay, turn t is that of member (t - 1) mod M, as published.
struct Rotation {
  int64_t turns = 0;  ///< taken so far, without those of members that have left for good
  size_t cursor = 0;  ///< position from which the next turn is sought

  std::optional<size_t> next(const std::vector<size_t>& members) const;
  void pass(size_t member);
  /// A member leaves for good: its turns no longer count, so that `exponent` stays that of the members left.
  void leave();
  /// The published exponent of the bias correction, floor(turns / M) + 1.
  int64_t exponent(const std::vector<size_t>& members) const;
};

}  // namespace sgdph::detail
