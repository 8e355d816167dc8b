#include "sgd_ph/probes.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

namespace sgdph::sgd_ph {
namespace {

at::Tensor draw_ones(const at::Tensor& parameter, const ProbePlace&, const SGDPHOptions&) {
  return at::ones_like(parameter);
}

at::Tensor draw_rademacher(const at::Tensor& parameter, const ProbePlace& place, const SGDPHOptions&) {
  return rademacher_like(parameter, place);
}

at::Tensor draw_hadamard(const at::Tensor& parameter, const ProbePlace& place, const SGDPHOptions& options) {
  const auto cycle = options.probe_cycle();
  return hadamard_row_like(parameter, static_cast<int64_t>(place.count) % cycle, cycle);
}

/// Into a running average, of which Paper weighs the new value and Reference the old one.
void average(SGDPHParamState& state, const at::Tensor& value, const SGDPHOptions& options, double pace) {
  const bool paper = options.rule() == Rule::Paper;
  double keep = paper ? 1 - options.hessian_momentum() : options.hessian_momentum();
  double take = paper ? options.hessian_momentum() : 1 - options.hessian_momentum();
  if (pace != 1) {
    keep = std::pow(keep, 1 / pace);
    take = 1 - keep;
  }
  // Not in place: the caller may keep the old state to return to.
  state.curvature(state.curvature().defined() ? state.curvature() * keep + value * take : value * take);
}

void average_absolute(SGDPHParamState& state, const at::Tensor& estimate, const SGDPHOptions& options, double pace) {
  const auto value = estimate.abs();
  average(state, options.rule() == Rule::Paper ? value + options.eps() : value, options, pace);
}

void average_cycle(SGDPHParamState& state, const at::Tensor& estimate, const SGDPHOptions& options, double pace) {
  const auto cycle = options.probe_cycle();
  const auto position = (state.refreshes() - 1) % cycle;
  state.cycle_sum(position == 0 ? estimate.clone() : state.cycle_sum() + estimate);
  const bool first_cycle = state.refreshes() <= cycle;
  if (!first_cycle && position != cycle - 1) return;
  const auto mean = state.cycle_sum() / static_cast<double>(position + 1);
  // The weight that gives a running average the noise of one in `pace`; the plain mean until there are so many.
  const int64_t complete = state.refreshes() / cycle;
  const auto cycles = static_cast<double>(complete);
  const double take = first_cycle ? 1 : std::max(2 / (pace + 1), 1 / cycles);
  const bool all = take == 1 || !state.curvature().defined();
  state.curvature(all ? mean : state.curvature() + (mean - state.curvature()) * take);
}

// clang-format off
constexpr ProbeKind kProbes[] = {
//                      floor signed zero   join   guard
    {Probe::Ones,       0,    false, true,  false, true,  draw_ones,       average_absolute},
    {Probe::Rademacher, 0.1,  true,  true,  true,  false, draw_rademacher, average},
    {Probe::Hadamard,   0.1,  true,  false, false, false, draw_hadamard,   average_cycle},
};
// clang-format on

}  // namespace

const ProbeKind& probe_kind(Probe probe) {
  for (const auto& kind : kProbes) {
    if (kind.probe == probe) return kind;
  }
  TORCH_INTERNAL_ASSERT(false, "no such probe: ", probe);
}

}  // namespace sgdph::sgd_ph
