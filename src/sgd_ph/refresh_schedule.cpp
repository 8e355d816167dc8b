#include "sgd_ph/refresh_schedule.h"

#include <algorithm>

namespace sgdph::sgd_ph {
namespace {

bool is_cyclic(const SGDPHOptions& options) {
  return options.effective_refresh() == Refresh::Cyclic;
}

bool is_spread(const SGDPHOptions& options) {
  return options.effective_refresh() == Refresh::Spread;
}

std::vector<size_t> measured_slots(const std::vector<Standing>& standings) {
  std::vector<size_t> slots;
  for (size_t i = 0; i < standings.size(); ++i) {
    if (standings[i].look || (standings[i].block && standings[i].has_turn)) slots.push_back(i);
  }
  return slots;
}

int64_t rounded_up(int64_t total, int64_t part) {
  return (total + part - 1) / part;
}

int64_t members(const std::vector<Standing>& standings) {
  return std::count_if(standings.begin(), standings.end(), [](const Standing& standing) { return standing.has_turn; });
}

}  // namespace

bool RefreshSchedule::is_published(const SGDPHOptions& options) {
  return options.rule() == Rule::Reference && is_cyclic(options) && options.refresh_every() == 1;
}

bool RefreshSchedule::is_refresh_step(const SGDPHOptions& options) const {
  return counts_.step % options.refresh_every() == 0;
}

/// Whose turn it is: the first from the cursor on that takes one, else the first of all. Where there is none, those
/// that wait let turns pass, so that they are looked at some time.
std::optional<size_t> RefreshSchedule::next(const std::vector<Standing>& standings) const {
  std::optional<size_t> first, first_waiting, waiting;
  for (size_t i = 0; i < standings.size(); ++i) {
    const bool later = i >= counts_.cursor;
    if (standings[i].has_turn || standings[i].look) {
      if (later) return i;
      if (!first) first = i;
    } else if (standings[i].waits) {
      if (later && !waiting) waiting = i;
      if (!first_waiting) first_waiting = i;
    }
  }
  return first ? first : waiting ? waiting : first_waiting;
}

/// From the cursor to the end of the round at most: neighbours in the network, so that no rank waits long for the
/// dearest product. What is left of the round is divided evenly over the steps it takes.
std::vector<size_t> RefreshSchedule::next_neighbours(const std::vector<Standing>& standings, int64_t ranks) const {
  const auto slots = measured_slots(standings);
  auto first = std::lower_bound(slots.begin(), slots.end(), counts_.cursor);
  if (first == slots.end()) first = slots.begin();
  const auto left = static_cast<int64_t>(slots.end() - first);
  if (left == 0) return {};
  return {first, first + rounded_up(left, rounded_up(left, ranks))};
}

double RefreshSchedule::pace(const SGDPHOptions& options, const std::vector<Standing>& standings, int64_t ranks) {
  const auto count = static_cast<int64_t>(measured_slots(standings).size());
  if (!is_spread(options) || count == 0) return 1;
  return static_cast<double>(count) / static_cast<double>(rounded_up(count, ranks));
}

std::vector<size_t> RefreshSchedule::due(
    const SGDPHOptions& options, const std::vector<Standing>& standings, int64_t ranks) const {
  if (!is_refresh_step(options)) return {};
  if (is_spread(options)) return next_neighbours(standings, ranks);
  auto slots = measured_slots(standings);
  if (is_cyclic(options)) {
    const auto turn = next(standings);
    const bool is_measured = turn && std::binary_search(slots.begin(), slots.end(), *turn);
    slots.clear();
    if (is_measured) slots.push_back(*turn);
  }
  return slots;
}

std::vector<size_t> RefreshSchedule::pass_turn(
    const SGDPHOptions& options, const std::vector<Standing>& standings, bool measured, int64_t ranks, bool reached) {
  std::vector<size_t> passed;
  const auto now = due(options, standings, ranks);
  has_passed_ = false;
  if (!is_refresh_step(options) || (!measured && !now.empty())) return passed;
  const bool absent = std::all_of(now.begin(), now.end(), [&](size_t slot) { return standings[slot].absent; });
  const bool rotates = is_cyclic(options) || is_spread(options);
  if (rotates && !reached && !absent && counts_.waited < members(standings)) {
    ++counts_.waited;
    return passed;
  }
  counts_.waited = 0;
  has_passed_ = true;
  if (is_spread(options)) {
    if (!now.empty()) counts_.cursor = now.back() + 1;
    counts_.turns += static_cast<int64_t>(now.size());
  }
  const auto pass = [&](size_t begin, size_t end) {
    for (auto i = begin; i < end; ++i) {
      if (standings[i].waits) passed.push_back(i);
    }
  };
  if (!is_cyclic(options)) {
    pass(0, standings.size());
    return passed;
  }
  const auto turn = next(standings);
  if (!turn) return passed;
  if (*turn >= counts_.cursor) {
    pass(counts_.cursor, *turn + 1);
  } else {
    pass(counts_.cursor, standings.size());
    pass(0, *turn + 1);
  }
  counts_.cursor = *turn + 1;
  if (standings[*turn].has_turn) ++counts_.turns;
  return passed;
}

void RefreshSchedule::leave(const SGDPHOptions& options) {
  if (is_cyclic(options)) --counts_.turns;
}

void RefreshSchedule::join(const SGDPHOptions& options, const std::vector<Standing>& standings) {
  if (is_cyclic(options)) counts_.turns += exponent(standings);
}

bool RefreshSchedule::in_first_round(const std::vector<Standing>& standings) const {
  // In steps as well: turns stand still while nothing is measured.
  return counts_.turns < members(standings) && counts_.step < static_cast<int64_t>(standings.size());
}

int64_t RefreshSchedule::exponent(const std::vector<Standing>& standings) const {
  return counts_.turns / std::max<int64_t>(members(standings), 1) + 1;
}

}  // namespace sgdph::sgd_ph
