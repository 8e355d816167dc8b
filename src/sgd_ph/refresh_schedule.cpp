#include "sgd_ph/refresh_schedule.h"

#include <algorithm>

namespace sgdph::sgd_ph {
namespace {

bool is_cyclic(const SGDPHOptions& options) {
  return options.effective_refresh() == Refresh::Cyclic;
}

}  // namespace

bool RefreshSchedule::is_published(const SGDPHOptions& options) {
  return options.rule() == Rule::Reference && is_cyclic(options) && options.refresh_every() == 1;
}

bool RefreshSchedule::is_refresh_step(const SGDPHOptions& options) const {
  return counts_.step % options.refresh_every() == 0;
}

/// Whose turn it is: the first member from the cursor on, else the first of all.
std::optional<size_t> RefreshSchedule::next(const std::vector<Standing>& standings) const {
  std::optional<size_t> first;
  for (size_t i = 0; i < standings.size(); ++i) {
    if (!standings[i].has_turn) continue;
    if (i >= counts_.cursor) return i;
    if (!first) first = i;
  }
  return first;
}

std::vector<size_t> RefreshSchedule::due(const SGDPHOptions& options, const std::vector<Standing>& standings) const {
  std::vector<size_t> slots;
  if (!is_refresh_step(options)) return slots;
  if (is_cyclic(options)) {
    const auto turn = next(standings);
    if (turn && standings[*turn].block) slots.push_back(*turn);
    return slots;
  }
  for (size_t i = 0; i < standings.size(); ++i) {
    if (standings[i].block && standings[i].has_turn) slots.push_back(i);
  }
  return slots;
}

void RefreshSchedule::pass_turn(const SGDPHOptions& options, const std::vector<Standing>& standings, bool measured) {
  if (!is_cyclic(options) || !is_refresh_step(options)) return;
  const auto turn = next(standings);
  if (!turn || (standings[*turn].block && !measured)) return;
  counts_.cursor = *turn + 1;
  ++counts_.turns;
}

void RefreshSchedule::leave(const SGDPHOptions& options) {
  if (is_cyclic(options)) --counts_.turns;
}

int64_t RefreshSchedule::exponent(const std::vector<Standing>& standings) const {
  const auto members =
      std::count_if(standings.begin(), standings.end(), [](const Standing& standing) { return standing.has_turn; });
  return counts_.turns / std::max<int64_t>(members, 1) + 1;
}

}  // namespace sgdph::sgd_ph
