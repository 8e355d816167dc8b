#include <sgdph/detail/finite.h>

#include "sgd_ph/curvature.h"
#include "sgd_ph/impl.h"
#include "sgd_ph/probes.h"
#include "sgd_ph/shift_guard.h"
#include "sgd_ph/update_rule.h"

#include <c10/util/StringUtil.h>
#include <torch/types.h>

#include <algorithm>
#include <set>

namespace sgdph {
namespace {

using sgd_ph::options_of;
using sgd_ph::shared_options;

}  // namespace

SGDPH::Impl::Notices SGDPH::Impl::absorb(SGDPH& self, const Measurements& measurements) {
  const auto& shared = shared_options(self);
  const auto standings = blocks.standings(self);
  const auto pace = sgd_ph::RefreshSchedule::pace(shared, standings, self.ranks());
  Notices notices;
  const auto due = schedule.due(shared, standings, self.ranks());
  const bool reached = due.empty() || !measurements.found.empty();
  for (const auto slot : schedule.pass_turn(shared, standings, measurements.measured, self.ranks(), reached)) {
    auto& state = self.state_of<SGDPHParamState>(blocks.slots()[slot].parameter);
    state.turns(state.turns() + 1);
  }
  const bool passed = measurements.measured && schedule.has_passed();
  for (const auto slot : passed ? due : std::vector<size_t>()) {
    const bool found = std::any_of(
        measurements.found.begin(), measurements.found.end(), [&](const auto& one) { return one.of.position == slot; });
    const auto* known = self.param_state(blocks.slots()[slot].parameter);
    if (found && (known == nullptr || known->missed() == 0)) continue;
    auto& state = self.state_of<SGDPHParamState>(blocks.slots()[slot].parameter);
    state.missed(found ? 0 : state.missed() + 1);
    if (state.missed() == sgd_ph::kTurnsToMiss) notices.absent.push_back(blocks.slots()[slot].name);
  }
  for (const auto& measured : measurements.found) {
    if (!measured.finite) continue;
    const auto position = measured.of.position;
    const auto& slot = blocks.slots()[position];
    auto& state = self.state_of<SGDPHParamState>(slot.parameter);
    const auto before = state.finding();
    if (!measured.has_graph) {
      sgd_ph::miss_look(state);
      const bool first = state.finding() != before && state.refreshes() == 0;
      if (first) notices.not_measurable.push_back(slot.name + (measured.why.empty() ? "" : " (" + measured.why + ")"));
      continue;
    }
    if (measured.second_product.defined()) {
      sgd_ph::take_look(
          state, sgd_ph::look_at(
                     measured.estimate, measured.second_product, measured.gradient, measurements.gradient_scale,
                     measured.type));
    } else if (before == Finding::NotMeasurable) {
      state.finding(state.next_look() == sgd_ph::kNever ? Finding::Curved : Finding::Unknown);
    }
    const auto now = blocks.standing(self, position);
    if (!now.block) {
      if (standings[position].has_turn) schedule.leave(shared);
      if (state.shift_invariant() && before != Finding::ShiftInvariant) notices.invariant.push_back(slot.name);
      continue;
    }
    if (!standings[position].has_turn) schedule.join(shared, standings);
    sgd_ph::absorb_estimate(state, measured.estimate, options_of(self, slot), pace);
    self.summary_.blocks_refreshed.push_back({slot.name, slot.parameter, measured.estimate});
  }
  return notices;
}

std::vector<at::Tensor> SGDPH::Impl::block_curvatures(SGDPH& self) const {
  const auto& shared = shared_options(self);
  const bool published = sgd_ph::RefreshSchedule::is_published(shared);
  const auto standings = blocks.standings(self);
  // A block not refreshed yet is first-order, except as published: there it divides by eps until its first turn.
  const bool published_start =
      published && sgd_ph::probe_kind(shared.probe()).starts_at_zero && schedule.in_first_round(standings);
  const auto published_exponent = schedule.exponent(standings);
  std::vector<at::Tensor> curvatures(standings.size());
  for (size_t i = 0; i < standings.size(); ++i) {
    const auto& slot = blocks.slots()[i];
    if (!moves(slot.parameter) || !standings[i].block) continue;
    const auto& state = self.state_of<SGDPHParamState>(slot.parameter);
    if (state.refreshes() == 0 && !(published_start && i >= schedule.counts().cursor)) continue;
    // Of a block that has not been there from the beginning the average is younger than the published count says.
    const double exponent =
        published ? static_cast<double>(std::min(published_exponent, state.refreshes() + 1)) : state.age();
    curvatures[i] = sgd_ph::rectified_curvature(state, slot.parameter, options_of(self, slot), exponent);
    if (!curvature_filter) continue;
    curvatures[i] = curvature_filter(curvatures[i]);
    TORCH_CHECK(
        curvatures[i].defined() && curvatures[i].sizes() == slot.parameter.sizes(),
        "SGDPH: the curvature filter must return a tensor of the block's shape ", slot.parameter.sizes());
  }
  return curvatures;
}

bool SGDPH::Impl::prepare_step(SGDPH& self, const Measurements& measurements, std::vector<at::Tensor>& curvatures) {
  const auto schedule_before = schedule;
  std::vector<std::pair<at::Tensor, std::optional<SGDPHParamState>>> states;
  const auto keep = [&](size_t slot) {
    const auto& parameter = blocks.slots()[slot].parameter;
    const auto* state = self.param_state(parameter);
    states.emplace_back(parameter, state == nullptr ? std::nullopt : std::optional(*state));
  };
  const auto standings = blocks.standings(self);
  std::set<size_t> changing;
  for (const auto& measured : measurements.found) changing.insert(measured.of.position);
  for (const auto slot : schedule.due(shared_options(self), standings, self.ranks())) changing.insert(slot);
  for (const auto slot : changing) keep(slot);
  for (size_t i = 0; i < standings.size(); ++i) {
    if (standings[i].waits && changing.count(i) == 0) keep(i);
  }
  const auto undo = [&] {
    schedule = schedule_before;
    self.summary_.blocks_refreshed.clear();
    for (const auto& [parameter, state] : states) {
      if (state) {
        self.state_of<SGDPHParamState>(parameter) = *state;
      } else {
        self.erase_state(parameter);
      }
    }
  };

  Notices notices;
  try {
    notices = absorb(self, measurements);
    curvatures = block_curvatures(self);
  } catch (...) {
    undo();
    throw;
  }
  if (const auto non_finite = curvature_filter ? detail::count_non_finite(curvatures) : 0; non_finite != 0) {
    self.summary_.non_finite += non_finite;
    undo();
    return false;
  }
  if (!notices.invariant.empty()) {
    TORCH_WARN(
        "SGDPH: shift-invariant (row sum zero at two looks in a row), first-order as long as it is so: ",
        c10::Join(", ", notices.invariant));
  }
  if (!notices.not_measurable.empty()) {
    TORCH_WARN(
        "SGDPH: not measurable, first-order as long as it is so: ", c10::Join(", ", notices.not_measurable),
        "; no graph leads through the gradient, as behind a backward pass that cannot be differentiated, or of a loss "
        "that is linear");
  }
  if (!notices.absent.empty()) {
    TORCH_WARN(
        "SGDPH: in ", sgd_ph::kTurnsToMiss, " turns in a row no loss has reached ", c10::Join(", ", notices.absent),
        "; such a block has no curvature, or keeps an old one, until one does");
  }
  return true;
}

void SGDPH::skip_update() {
  summary_.step = impl_->schedule.counts().step;
  CurvatureOptimizer::skip_update();
}

void SGDPH::update() {
  summary_.step = impl_->schedule.counts().step;
  const auto& slots = impl_->blocks.slots();
  const auto measurements = close_window();
  std::vector<at::Tensor> curvatures;
  summary_.applied = impl_->prepare_step(*this, measurements, curvatures);
  if (!summary_.applied) return;

  impl_->schedule.count_step();
  summary_.step = impl_->schedule.counts().step;
  for (size_t i = 0; i < slots.size(); ++i) {
    auto parameter = slots[i].parameter;
    if (!moves(parameter)) continue;
    auto& state = state_of<SGDPHParamState>(parameter);
    const auto& options = options_of(*this, slots[i]);
    const auto step = [&](at::Tensor& value) {
      if (curvatures[i].defined()) {
        sgd_ph::second_order_step(value, state, options, curvatures[i]);
      } else {
        sgd_ph::first_order_step(value, state, options);
      }
    };
    const bool block = slots[i].candidate && options.second_order();
    if (sgd_ph::is_reduced(parameter) && (block || options.master_weights())) {
      sgd_ph::step_master(parameter, state, step);
    } else {
      state.master({});
      step(parameter);
    }
  }
}

}  // namespace sgdph
