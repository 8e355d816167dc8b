#include <sgdph/sgd_ph.h>

#include <sgdph/detail/finite.h>

#include "sgd_ph/curvature.h"
#include "sgd_ph/module_blocks.h"
#include "sgd_ph/shift_guard.h"
#include "sgd_ph/update_rule.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include <exception>
#include <unordered_map>

namespace sgdph {
namespace {

using torch::optim::OptimizerParamGroup;

std::vector<at::Tensor> parameters_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> parameters;
  for (const auto& item : classify_parameters(module)) parameters.push_back(item.parameter);
  return parameters;
}

struct SgdPhProgress final : public detail::Fields {
  int64_t step = 0;
  int64_t turns = 0;
  int64_t cursor = 0;
  bool by_module = false;
  std::vector<int64_t> candidates;

  void visit(detail::FieldVisitor& visitor) override {
    visitor("step", step);
    visitor("turns", turns);
    visitor("cursor", cursor);
    visitor("by_module", by_module);
    visitor("candidates", candidates);
  }
};

}  // namespace

void SGDPHParamState::visit(detail::FieldVisitor& visitor) {
  visitor("momentum_buffer", momentum_buffer_);
  visitor("curvature", curvature_);
  visitor("cycle_sum", cycle_sum_);
  visitor("refreshes", refreshes_);
  visitor("guard_checked", guard_checked_);
  visitor("shift_invariant", shift_invariant_);
}

SGDPH::SGDPH(std::vector<OptimizerParamGroup> groups, SGDPHOptions defaults)
    : CurvatureOptimizer("SGDPH", std::move(groups), std::make_unique<SGDPHOptions>(defaults)) {
  check();
}

SGDPH::SGDPH(std::vector<at::Tensor> parameters, SGDPHOptions defaults)
    : SGDPH(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}

SGDPH::SGDPH(const torch::nn::Module& module, SGDPHOptions defaults)
    : CurvatureOptimizer(
          "SGDPH", {OptimizerParamGroup(parameters_of(module))}, std::make_unique<SGDPHOptions>(defaults)),
      by_module_(true) {
  for (const auto& item : classify_parameters(module)) {
    slots_.push_back({item.parameter, 0, item.name, item.block, false, item.kind});
  }
  check();
}

const SGDPHOptions& SGDPH::wide() const {
  return static_cast<const SGDPHOptions&>(*defaults_);
}

const SGDPHOptions& SGDPH::options_of(const Slot& slot) const {
  return static_cast<const SGDPHOptions&>(param_groups_[slot.group].options());
}

// --- The step ------------------------------------------------------------------------------------------------------

/// Whether the authors' schedule is in force, for which their bias correction and start are followed.
bool SGDPH::published_schedule() const {
  return wide().rule() == Rule::Reference && wide().effective_refresh() == Refresh::Cyclic &&
         wide().refresh_every() == 1;
}

/// Takes the measurements into the states, and returns the names of blocks found shift-invariant.
std::string SGDPH::absorb_measurements() {
  const bool cyclic = wide().effective_refresh() == Refresh::Cyclic;
  if (cyclic && refresh_step()) {
    const auto next = rotation_.next(rotation_members());
    if (next && (measured_ || !is_block(slots_[*next]))) rotation_.pass(*next);
  }
  std::string invariant;
  for (const auto& measured : measurements_) {
    const auto& slot = slots_[measured.slot];
    auto& state = state_of<SGDPHParamState>(slot.parameter);
    if (measured.random_product.defined()) {
      state.guard_checked(true);
      state.shift_invariant(
          is_shift_invariant(measured.estimate, measured.random_product, measured.gradient, gradient_scale_));
    }
    if (state.shift_invariant()) {
      invariant += (invariant.empty() ? "" : ", ") + slot.name;
      if (cyclic) rotation_.leave();
      continue;
    }
    absorb_estimate(state, measured.estimate, options_of(slot));
    summary_.blocks_refreshed.push_back({slot.name, slot.parameter, measured.estimate});
  }
  return invariant;
}

/// What each slot's momentum is divided by; undefined for those that take the first-order step.
std::vector<at::Tensor> SGDPH::block_curvatures() {
  const auto published_exponent = rotation_.exponent(rotation_members());
  std::vector<at::Tensor> curvatures(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    const auto& slot = slots_[i];
    if (!moves(slot.parameter) || !is_block(slot)) continue;
    const auto& options = options_of(slot);
    const auto& state = state_of<SGDPHParamState>(slot.parameter);
    // A block not refreshed yet is first-order, except as published: there it divides by eps from the start.
    const bool published_start = published_schedule() && options.probe() != Probe::Hadamard;
    if (state.refreshes() == 0 && !published_start) continue;
    const auto exponent = published_schedule() ? published_exponent : state.refreshes();
    curvatures[i] = rectified_curvature(state, slot.parameter, options, exponent);
    if (!curvature_filter_) continue;
    curvatures[i] = curvature_filter_(curvatures[i]);
    TORCH_CHECK(
        curvatures[i].defined() && curvatures[i].sizes() == slot.parameter.sizes(),
        "SGDPH: the curvature filter must return a tensor of the block's shape ", slot.parameter.sizes());
  }
  return curvatures;
}

/// All of a step that can fail: takes the measurements in and computes `curvatures`. If it does fail, rotation and
/// states are as before.
bool SGDPH::prepare_step(std::vector<at::Tensor>& curvatures) {
  const auto rotation = rotation_;
  std::vector<std::pair<at::Tensor, std::optional<SGDPHParamState>>> states;
  for (const auto& measured : measurements_) {
    const auto& parameter = slots_[measured.slot].parameter;
    const auto* state = find_state_of<SGDPHParamState>(parameter);
    states.emplace_back(parameter, state == nullptr ? std::nullopt : std::optional(*state));
  }
  const auto undo = [&] {
    rotation_ = rotation;
    summary_.blocks_refreshed.clear();
    for (const auto& [parameter, state] : states) {
      if (state) {
        state_of<SGDPHParamState>(parameter) = *state;
      } else {
        erase_state(parameter);
      }
    }
  };

  std::string invariant;
  try {
    invariant = absorb_measurements();
    curvatures = block_curvatures();
  } catch (...) {
    undo();
    throw;
  }
  if (curvature_filter_) summary_.non_finite = detail::count_non_finite(curvatures);
  if (summary_.non_finite != 0) {
    undo();
    return false;
  }
  if (!invariant.empty()) {
    TORCH_WARN("SGDPH: shift-invariant (row sum zero), first-order from now on: ", invariant);
  }
  return true;
}

void SGDPH::update() {
  summary_ = {};
  summary_.step = step_;
  summary_.products = products_done();
  std::vector<at::Tensor> gradients;
  for (const auto& slot : slots_) {
    if (moves(slot.parameter)) gradients.push_back(slot.parameter.grad());
  }
  summary_.non_finite = detail::count_non_finite(gradients) + count_non_finite();
  std::vector<at::Tensor> curvatures;
  summary_.applied = summary_.non_finite == 0 && prepare_step(curvatures);
  forget_measurements();
  if (!summary_.applied) return;

  summary_.step = ++step_;
  for (size_t i = 0; i < slots_.size(); ++i) {
    auto& parameter = slots_[i].parameter;
    if (!moves(parameter)) continue;
    auto& state = state_of<SGDPHParamState>(parameter);
    if (curvatures[i].defined()) {
      second_order_step(parameter, state, options_of(slots_[i]), curvatures[i]);
    } else {
      first_order_step(parameter, state, options_of(slots_[i]));
    }
  }
}

// --- The archive ---------------------------------------------------------------------------------------------------

std::unique_ptr<torch::optim::OptimizerParamState> SGDPH::make_state() const {
  return std::make_unique<SGDPHParamState>();
}

std::unique_ptr<detail::Fields> SGDPH::progress() const {
  auto progress = std::make_unique<SgdPhProgress>();
  progress->step = step_;
  progress->turns = rotation_.turns;
  progress->cursor = static_cast<int64_t>(rotation_.cursor);
  progress->by_module = by_module_;
  // By parameter, since groups may have been added through the base class since the slots were made.
  std::unordered_map<const at::TensorImpl*, bool> candidates;
  for (const auto& slot : slots_) candidates.emplace(slot.parameter.unsafeGetTensorImpl(), slot.candidate);
  for (const auto& group : param_groups_) {
    for (const auto& parameter : group.params()) {
      const auto found = candidates.find(parameter.unsafeGetTensorImpl());
      progress->candidates.push_back(found == candidates.end() ? parameter.dim() == 1 : found->second);
    }
  }
  return progress;
}

void SGDPH::check_progress(const detail::Fields& fields) const {
  const auto& progress = dynamic_cast<const SgdPhProgress&>(fields);
  TORCH_CHECK(
      progress.step >= 0 && progress.turns >= 0 && progress.cursor >= 0 && progress.candidates.size() == slots_.size(),
      "SGDPH: the archive's step count or partition does not fit this optimizer");
}

void SGDPH::set_progress(detail::Fields& fields) {
  const auto& progress = dynamic_cast<const SgdPhProgress&>(fields);
  step_ = progress.step;
  rotation_ = {progress.turns, static_cast<size_t>(progress.cursor)};
  by_module_ = progress.by_module;
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].candidate = progress.candidates[i] != 0;
}

}  // namespace sgdph
