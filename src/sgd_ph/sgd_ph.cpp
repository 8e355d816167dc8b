#include <sgdph/sgd_ph.h>

#include <sgdph/detail/finite.h>

#include "sgd_ph/blocks.h"
#include "sgd_ph/curvature.h"
#include "sgd_ph/probes.h"
#include "sgd_ph/refresh_schedule.h"
#include "sgd_ph/shift_guard.h"
#include "sgd_ph/update_rule.h"

#include <c10/util/StringUtil.h>
#include <torch/types.h>

#include <algorithm>
#include <unordered_set>

namespace sgdph {
namespace {

using sgd_ph::options_of;
using sgd_ph::shared_options;
using torch::optim::OptimizerParamGroup;

// Streams of random draws.
constexpr uint64_t kProbeStream = 0;
constexpr uint64_t kGuardStream = 1;

std::vector<OptimizerParamGroup> one_group_of(const sgd_ph::Blocks& blocks) {
  std::vector<at::Tensor> parameters;
  for (const auto& slot : blocks.slots()) parameters.push_back(slot.parameter);
  return {OptimizerParamGroup(std::move(parameters))};
}

struct SgdPhProgress final : public detail::Fields {
  int64_t step = 0;
  int64_t turns = 0;
  int64_t cursor = 0;
  sgd_ph::Blocks::Record blocks;

  void visit(detail::FieldVisitor& visitor) override {
    visitor("step", step);
    visitor("turns", turns);
    visitor("cursor", cursor);
    visitor("by_module", blocks.by_module);
    visitor("candidates", blocks.candidates);
    if (visitor.format() < 2) return;
    visitor("names", blocks.names);
    visitor("kinds", blocks.kinds);
  }
};

}  // namespace

// --- Construction --------------------------------------------------------------------------------------------------

SGDPH::SGDPH(const sgd_ph::Blocks& blocks, std::vector<OptimizerParamGroup> groups, const SGDPHOptions& defaults)
    : CurvatureOptimizer("SGDPH", std::move(groups), std::make_unique<SGDPHOptions>(defaults)),
      blocks_(std::make_unique<sgd_ph::Blocks>(blocks)),
      schedule_(std::make_unique<sgd_ph::RefreshSchedule>()) {
  check();
}

SGDPH::SGDPH(const sgd_ph::Blocks& blocks, const SGDPHOptions& defaults)
    : SGDPH(blocks, one_group_of(blocks), defaults) {}

SGDPH::SGDPH(std::vector<OptimizerParamGroup> groups, SGDPHOptions defaults)
    : SGDPH(sgd_ph::Blocks(), std::move(groups), defaults) {}

SGDPH::SGDPH(std::vector<at::Tensor> parameters, SGDPHOptions defaults)
    : SGDPH(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}

SGDPH::SGDPH(const torch::nn::Module& module, SGDPHOptions defaults, const Classifier& classifier)
    : SGDPH(sgd_ph::Blocks(sgd_ph::classify_parameters(module, classifier), /*published=*/false), defaults) {}

SGDPH::SGDPH(
    const torch::OrderedDict<std::string, at::Tensor>& named, SGDPHOptions defaults, const Classifier& classifier)
    : SGDPH(sgd_ph::Blocks(sgd_ph::classify_parameters(named, classifier), /*published=*/!classifier), defaults) {}

SGDPH::SGDPH(SGDPH&& other) noexcept = default;
SGDPH::~SGDPH() = default;

void SGDPH::groups_changed() {
  blocks_->follow(param_groups_);
  CurvatureOptimizer::groups_changed();
}

SGDPH& SGDPH::group(const Selector& selector, const SGDPHOptions& options) {
  check();
  std::unordered_set<const at::TensorImpl*> chosen;
  for (const auto& slot : blocks_->slots()) {
    const auto [info, module] = sgd_ph::Blocks::info_of(slot);
    if (selector(info)) chosen.insert(slot.parameter.unsafeGetTensorImpl());
  }
  TORCH_CHECK(
      !chosen.empty(), "SGDPH::group: no parameter is chosen, of ", blocks_->slots().size(),
      "; partition() lists their names");

  std::vector<at::Tensor> moved;
  std::vector<std::vector<at::Tensor>> before;
  for (auto& group : param_groups_) {
    before.push_back(group.params());
    group.params().clear();
    for (const auto& parameter : before.back()) {
      (chosen.count(parameter.unsafeGetTensorImpl()) != 0 ? moved : group.params()).push_back(parameter);
    }
  }
  // LibTorch's `add_param_group` takes no parameter that has a state.
  param_groups_.emplace_back(std::move(moved), std::make_unique<SGDPHOptions>(options));
  try {
    check();
  } catch (...) {
    param_groups_.pop_back();
    for (size_t i = 0; i < before.size(); ++i) param_groups_[i].params() = before[i];
    throw;
  }
  return *this;
}

SGDPH& SGDPH::group(const Classifier& classifier, const SGDPHOptions& options) {
  return group([&](const ParameterInfo& info) { return classifier(info) == Role::Block; }, options);
}

std::string SGDPH::describe() const {
  const auto all = partition();
  return std::to_string(all.blocks()) + " of " + std::to_string(all.entries.size()) + " parameters are blocks";
}

std::string SGDPH::name_of(const at::Tensor& parameter) const {
  for (const auto& slot : blocks_->slots()) {
    if (slot.named && slot.parameter.is_same(parameter)) return slot.name;
  }
  return "";
}

Partition SGDPH::partition() const {
  auto partition = blocks_->partition(*this);
  for (auto& entry : partition.entries) {
    if (entry.second_order && rejected_in_a_row(entry.parameter) != 0) entry.reason += ", curvature not finite";
  }
  return partition;
}

// --- Measuring -----------------------------------------------------------------------------------------------------

std::vector<DueParameter> SGDPH::due() const {
  std::vector<DueParameter> due;
  for (const auto slot : schedule_->due(shared_options(*this), blocks_->standings(*this))) {
    due.push_back({slot, blocks_->slots()[slot].parameter});
  }
  return due;
}

bool SGDPH::wants_guard(size_t slot) const {
  const auto& parameter = blocks_->slots()[slot].parameter;
  return !has_probe_source() && sgd_ph::guard_looks(shared_options(*this), param_state(parameter));
}

Probes SGDPH::probes_of(const DueParameter& due) const {
  const auto& options = shared_options(*this);
  Probes probes;
  if (has_probe_source()) {
    probes.probe = probe_from_source(due.parameter);
  } else {
    const auto* state = param_state(due.parameter);
    const auto refreshes = static_cast<uint64_t>(state == nullptr ? 0 : state->refreshes());
    const ProbePlace place{options.seed(), kProbeStream, due.position, refreshes};
    probes.probe = sgd_ph::probe_kind(options.probe()).draw(due.parameter, place, options);
  }
  if (wants_guard(due.position)) {
    const auto* state = param_state(due.parameter);
    const auto turns = static_cast<uint64_t>(state == nullptr ? 0 : state->turns());
    probes.second = sgd_ph::mixed_signs_like(due.parameter, {options.seed(), kGuardStream, due.position, turns});
  }
  return probes;
}

bool SGDPH::joint() const {
  return shared_options(*this).effective_refresh() == Refresh::Joint;
}

// --- The step ------------------------------------------------------------------------------------------------------

/// Takes the measurements into the states, and returns what there is to say about it.
SGDPH::Notices SGDPH::absorb(const Measurements& measurements) {
  const auto& shared = shared_options(*this);
  const auto standings = blocks_->standings(*this);
  for (const auto slot : schedule_->pass_turn(shared, standings, measurements.measured)) {
    auto& state = state_of<SGDPHParamState>(blocks_->slots()[slot].parameter);
    state.turns(state.turns() + 1);
  }
  Notices notices;
  for (const auto& measured : measurements.found) {
    if (!measured.finite) continue;
    const auto position = measured.of.position;
    const auto& slot = blocks_->slots()[position];
    auto& state = state_of<SGDPHParamState>(slot.parameter);
    const auto before = state.finding();
    if (!measured.has_graph) {
      sgd_ph::miss_look(state);
      const bool first = state.finding() != before && state.refreshes() == 0;
      if (first) notices.not_measurable.push_back(slot.name);
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
    const auto now = blocks_->standing(*this, position);
    if (!now.block) {
      if (standings[position].has_turn) schedule_->leave(shared);
      if (state.shift_invariant() && before != Finding::ShiftInvariant) notices.invariant.push_back(slot.name);
      continue;
    }
    if (!standings[position].has_turn) schedule_->join(shared, standings);
    sgd_ph::absorb_estimate(state, measured.estimate, options_of(*this, slot));
    summary_.blocks_refreshed.push_back({slot.name, slot.parameter, measured.estimate});
  }
  return notices;
}

/// What each slot's momentum is divided by; undefined for those that take the first-order step.
std::vector<at::Tensor> SGDPH::block_curvatures() {
  const auto& shared = shared_options(*this);
  const bool published = sgd_ph::RefreshSchedule::is_published(shared);
  const auto standings = blocks_->standings(*this);
  // A block not refreshed yet is first-order, except as published: there it divides by eps until its first turn.
  const bool published_start =
      published && sgd_ph::probe_kind(shared.probe()).starts_at_zero && schedule_->in_first_round(standings);
  const auto published_exponent = schedule_->exponent(standings);
  std::vector<at::Tensor> curvatures(standings.size());
  for (size_t i = 0; i < standings.size(); ++i) {
    const auto& slot = blocks_->slots()[i];
    if (!moves(slot.parameter) || !standings[i].block) continue;
    const auto& state = state_of<SGDPHParamState>(slot.parameter);
    if (state.refreshes() == 0 && !(published_start && i >= schedule_->counts().cursor)) continue;
    // Of a block that has not been there from the beginning the average is younger than the published count says.
    const auto exponent = published ? std::min(published_exponent, state.refreshes() + 1) : state.refreshes();
    curvatures[i] = sgd_ph::rectified_curvature(state, slot.parameter, options_of(*this, slot), exponent);
    if (!curvature_filter_) continue;
    curvatures[i] = curvature_filter_(curvatures[i]);
    TORCH_CHECK(
        curvatures[i].defined() && curvatures[i].sizes() == slot.parameter.sizes(),
        "SGDPH: the curvature filter must return a tensor of the block's shape ", slot.parameter.sizes());
  }
  return curvatures;
}

/// All of a step that can fail: takes the measurements in and computes `curvatures`. If it does fail, schedule and
/// states are as before.
bool SGDPH::prepare_step(const Measurements& measurements, std::vector<at::Tensor>& curvatures) {
  const auto schedule = *schedule_;
  std::vector<std::pair<at::Tensor, std::optional<SGDPHParamState>>> states;
  const auto keep = [&](size_t slot) {
    const auto& parameter = blocks_->slots()[slot].parameter;
    const auto* state = param_state(parameter);
    states.emplace_back(parameter, state == nullptr ? std::nullopt : std::optional(*state));
  };
  for (const auto& measured : measurements.found) keep(measured.of.position);
  const auto standings = blocks_->standings(*this);
  for (size_t i = 0; i < standings.size(); ++i) {
    if (standings[i].waits) keep(i);
  }
  const auto undo = [&] {
    *schedule_ = schedule;
    summary_.blocks_refreshed.clear();
    for (const auto& [parameter, state] : states) {
      if (state) {
        state_of<SGDPHParamState>(parameter) = *state;
      } else {
        erase_state(parameter);
      }
    }
  };

  Notices notices;
  try {
    notices = absorb(measurements);
    curvatures = block_curvatures();
  } catch (...) {
    undo();
    throw;
  }
  if (const auto non_finite = curvature_filter_ ? detail::count_non_finite(curvatures) : 0; non_finite != 0) {
    summary_.non_finite += non_finite;
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
  return true;
}

void SGDPH::skip_update() {
  summary_.step = schedule_->counts().step;
  CurvatureOptimizer::skip_update();
}

void SGDPH::update() {
  summary_.step = schedule_->counts().step;
  const auto& slots = blocks_->slots();
  const auto measurements = close_window();
  std::vector<at::Tensor> curvatures;
  summary_.applied = prepare_step(measurements, curvatures);
  if (!summary_.applied) return;

  schedule_->count_step();
  summary_.step = schedule_->counts().step;
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

// --- The archive ---------------------------------------------------------------------------------------------------

std::unique_ptr<torch::optim::OptimizerParamState> SGDPH::make_state() const {
  return std::make_unique<SGDPHParamState>();
}

std::unique_ptr<detail::Fields> SGDPH::progress() const {
  const auto& counts = schedule_->counts();
  auto progress = std::make_unique<SgdPhProgress>();
  progress->step = counts.step;
  progress->turns = counts.turns;
  progress->cursor = static_cast<int64_t>(counts.cursor);
  // Of the groups, not the slots: some may have been added through the base class since the last check.
  progress->blocks = blocks_->record(param_groups_);
  return progress;
}

void SGDPH::check_progress(const detail::Fields& fields) const {
  const auto& progress = dynamic_cast<const SgdPhProgress&>(fields);
  const auto& blocks = progress.blocks;
  const auto fits = [&](size_t count) { return count == blocks_->slots().size(); };
  TORCH_CHECK(
      progress.step >= 0 && progress.turns >= 0 && progress.cursor >= 0 && fits(blocks.candidates.size()) &&
          (blocks.names.empty() || fits(blocks.names.size())) && (blocks.kinds.empty() || fits(blocks.kinds.size())),
      "SGDPH: the archive's step count or partition does not fit this optimizer");
}

void SGDPH::set_progress(detail::Fields& fields) {
  const auto& progress = dynamic_cast<const SgdPhProgress&>(fields);
  *schedule_ = sgd_ph::RefreshSchedule({progress.step, progress.turns, static_cast<size_t>(progress.cursor)});
  blocks_->restore(progress.blocks);
}

std::vector<std::string> SGDPH::names_in(const detail::Fields& fields) const {
  return dynamic_cast<const SgdPhProgress&>(fields).blocks.names;
}

void SGDPH::set_matching_progress(const detail::Fields& fields) {
  // Curvature is corrected by the number of turns it was averaged over; whose turn is next is begun anew.
  const auto& progress = dynamic_cast<const SgdPhProgress&>(fields);
  *schedule_ = sgd_ph::RefreshSchedule({std::max<int64_t>(progress.step, 0), std::max<int64_t>(progress.turns, 0), 0});
}

}  // namespace sgdph
