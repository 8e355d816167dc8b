#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sgdph::lab::tables {

/// How two orders of the same things agree.
struct RankAgreement {
  size_t pairs = 0;    ///< that both sides order; ties are left out
  size_t swapped = 0;  ///< of them, ordered the other way round
  double tau = 0;      ///< Kendall's tau-b: 1 the same order, -1 the opposite

  /// "the paper's ranking", "mostly the paper's ranking: 2 of 21 pairs swapped", ...
  std::string words() const;
};

/// Of figures of the same things; nothing is compared if there are fewer than two.
RankAgreement rank_agreement(const std::vector<double>& ours, const std::vector<double>& paper);

/// The rank of each figure from 1, equal ones sharing the better rank; highest first, or lowest.
std::vector<size_t> ranks_of(const std::vector<double>& figures, bool highest_first);

}  // namespace sgdph::lab::tables
