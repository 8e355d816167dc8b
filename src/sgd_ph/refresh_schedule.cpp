#include "sgd_ph/refresh_schedule.h"

#include <algorithm>

namespace sgdph::sgd_ph {
namespace {

bool is_cyclic(const SGDPHOptions& options) {
  return options.effective_refresh() == Refresh::Cyclic;
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

std::vector<size_t> RefreshSchedule::due(const SGDPHOptions& options, const std::vector<Standing>& standings) const {
  std::vector<size_t> slots;
  if (!is_refresh_step(options)) return slots;
  const auto is_measured = [&](size_t i) { return standings[i].look || (standings[i].block && standings[i].has_turn); };
  if (is_cyclic(options)) {
    const auto turn = next(standings);
    if (turn && is_measured(*turn)) slots.push_back(*turn);
    return slots;
  }
  for (size_t i = 0; i < standings.size(); ++i) {
    if (is_measured(i)) slots.push_back(i);
  }
  return slots;
}

std::vector<size_t> RefreshSchedule::pass_turn(
    const SGDPHOptions& options, const std::vector<Standing>& standings, bool measured) {
  std::vector<size_t> passed;
  if (!is_refresh_step(options) || (!measured && !due(options, standings).empty())) return passed;
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
