#include <sgdph/sgd_ph.h>

#include <sgdph/detail/finite.h>
#include <sgdph/hessian.h>

#include "probe.h"
#include "sgd_ph/shift_guard.h"

#include <torch/types.h>

// SGDPH: measuring the curvature of the blocks that are due.

namespace sgdph {
namespace {

// Streams of random draws.
constexpr uint64_t kProbeStream = 0;
constexpr uint64_t kGuardStream = 1;

}  // namespace

bool SGDPH::wants_guard(const Slot& slot) const {
  if (!wide().shift_guard() || wide().probe() != Probe::Ones || has_probe_source()) return false;
  const auto* state = find_state_of<SGDPHParamState>(slot.parameter);
  return state == nullptr || !state->guard_checked();
}

at::Tensor SGDPH::probe_of(size_t slot) const {
  const auto& parameter = slots_[slot].parameter;
  if (has_probe_source()) return probe_from_source(parameter);
  const auto* state = find_state_of<SGDPHParamState>(parameter);
  const auto refreshes = state == nullptr ? 0 : state->refreshes();
  switch (wide().probe()) {
    case Probe::Rademacher:
      return rademacher_like(parameter, {wide().seed(), kProbeStream, slot, static_cast<uint64_t>(refreshes)});
    case Probe::Hadamard: return hadamard_row_like(parameter, refreshes % wide().probe_cycle(), wide().probe_cycle());
    case Probe::Ones: break;
  }
  return at::ones_like(parameter);
}

SGDPH::Measured SGDPH::measure_block(size_t slot, const at::Tensor& gradient, bool retain_graph) const {
  const auto& parameter = slots_[slot].parameter;
  const bool guard = wants_guard(slots_[slot]);
  Measured measured;
  measured.slot = slot;
  const auto probe = probe_of(slot);
  measured.estimate = probe * hessian_vector_product(gradient, parameter, probe, retain_graph || guard);
  all_reduce(measured.estimate);
  if (guard) {
    const auto signs = mixed_signs_like(parameter, {wide().seed(), kGuardStream, slot, 0});
    measured.random_product = hessian_vector_product(gradient, parameter, signs, retain_graph);
    measured.gradient = gradient.detach().clone();
    all_reduce(measured.random_product);
    all_reduce(measured.gradient);
  }
  return measured;
}

void SGDPH::measure(
    const Request& request, const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& all,
    bool retain_graph) {
  const auto slots = due();
  std::vector<Measured> measured;
  if (wide().effective_refresh() == Refresh::Joint) {
    std::vector<at::Tensor> probes;
    for (const auto slot : slots) probes.push_back(probe_of(slot));
    const auto products = hessian_vector_product(gradients, request.parameters, probes, retain_graph);
    for (size_t i = 0; i < slots.size(); ++i) {
      if (!gradients[i].defined()) continue;
      measured.push_back({slots[i], probes[i] * products[i], {}, {}});
      all_reduce(measured.back().estimate);
    }
  } else {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const bool more = i + 1 < slots.size();
      measured.push_back(measure_block(slots[i], gradients[i], retain_graph || more));
    }
  }
  auto scale = request.with_scale ? gradient_scale(all) : at::zeros({}, at::kDouble);
  if (request.with_scale) all_reduce(scale);

  gradient_scale_ = scale.item<double>();
  measurements_ = std::move(measured);
  measured_ = true;
  // One that is not finite stops the next step, unless a later backward of that step measures a better one.
  usable_ = count_non_finite() == 0;
}

/// Among the measurements.
int64_t SGDPH::count_non_finite() const {
  std::vector<at::Tensor> values;
  for (const auto& measured : measurements_) {
    values.push_back(measured.estimate);
    values.push_back(measured.random_product);
  }
  return detail::count_non_finite(values);
}

int64_t SGDPH::products_done() const {
  if (wide().effective_refresh() == Refresh::Joint) return measurements_.empty() ? 0 : 1;
  int64_t products = 0;
  for (const auto& measured : measurements_) products += measured.random_product.defined() ? 2 : 1;
  return products;
}

void SGDPH::forget_measurements() {
  measured_ = false;
  measurements_.clear();
}

}  // namespace sgdph
