#include "tables/ranking.h"

#include <fmt/format.h>

#include <cmath>

namespace sgdph::lab::tables {
namespace {

int sign_of(double value) {
  return value > 0 ? 1 : value < 0 ? -1 : 0;
}

}  // namespace

RankAgreement rank_agreement(const std::vector<double>& ours, const std::vector<double>& paper) {
  RankAgreement result;
  size_t ordered_ours = 0;
  size_t ordered_paper = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const auto a = sign_of(ours[i] - ours[j]);
      const auto b = sign_of(paper[i] - paper[j]);
      ordered_ours += a != 0 ? 1 : 0;
      ordered_paper += b != 0 ? 1 : 0;
      if (a * b == 0) continue;
      ++result.pairs;
      result.swapped += a != b ? 1 : 0;
    }
  }
  if (result.pairs > 0) {
    const auto difference = static_cast<double>(result.pairs) - 2 * static_cast<double>(result.swapped);
    result.tau = difference / std::sqrt(static_cast<double>(ordered_ours) * static_cast<double>(ordered_paper));
  }
  return result;
}

std::string RankAgreement::words() const {
  if (pairs == 0) return "no ranking to compare";
  if (swapped == 0) return "the paper's ranking";
  const auto part = static_cast<double>(swapped) / static_cast<double>(pairs);
  const auto* how = part <= 0.25   ? "mostly the paper's ranking"
                    : part < 0.5   ? "partly the paper's ranking"
                    : part <= 0.75 ? "not the paper's ranking"
                                   : "nearly the opposite of the paper's ranking";
  return fmt::format("{}: {} of {} pairs swapped", how, swapped, pairs);
}

std::vector<size_t> ranks_of(const std::vector<double>& figures, bool highest_first) {
  std::vector<size_t> ranks;
  for (const auto figure : figures) {
    size_t rank = 1;
    for (const auto other : figures) rank += (highest_first ? other > figure : other < figure) ? 1 : 0;
    ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace sgdph::lab::tables
