#include <sgdph/sgd_ph.h>

#include "curvature_estimate.h"
#include "detail/finite.h"
#include "hessian.h"
#include "module_blocks.h"
#include "probe.h"
#include "shift_guard.h"
#include "update_rule.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include <algorithm>
#include <unordered_map>

namespace sgdph {
namespace {

using torch::optim::OptimizerParamGroup;

// Streams of random draws.
constexpr uint64_t kProbeStream = 0;
constexpr uint64_t kGuardStream = 1;

std::vector<at::Tensor> parameters_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> parameters;
  for (const auto& item : classify_parameters(module)) parameters.push_back(item.parameter);
  return parameters;
}

struct Progress final : public detail::Fields {
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

// --- Which parameters are blocks -----------------------------------------------------------------------------------

const SGDPHOptions& SGDPH::wide() const {
  return static_cast<const SGDPHOptions&>(*defaults_);
}

const SGDPHOptions& SGDPH::options_of(const Slot& slot) const {
  return static_cast<const SGDPHOptions&>(param_groups_[slot.group].options());
}

void SGDPH::check_together(const std::vector<const torch::optim::OptimizerOptions*>& all) const {
  const auto& defaults = static_cast<const SGDPHOptions&>(*all[0]);
  for (size_t i = 1; i < all.size(); ++i) {
    const auto& group = static_cast<const SGDPHOptions&>(*all[i]);
    const auto same = [&](const char* option, const auto& wanted, const auto& got) {
      TORCH_CHECK(
          wanted == got, "SGDPH, group ", i - 1, ": ", option, " is optimizer-wide and must be ", wanted,
          " as in the defaults, got ", got);
    };
    same("rule", defaults.rule(), group.rule());
    same("probe", defaults.probe(), group.probe());
    same("probe_cycle", defaults.probe_cycle(), group.probe_cycle());
    same("refresh", defaults.effective_refresh(), group.effective_refresh());
    same("refresh_every", defaults.refresh_every(), group.refresh_every());
    same("shift_guard", defaults.shift_guard(), group.shift_guard());
    same("seed", defaults.seed(), group.seed());
  }
}

void SGDPH::groups_changed() {
  std::unordered_map<const at::TensorImpl*, Slot> known;
  for (auto& slot : slots_) known.emplace(slot.parameter.unsafeGetTensorImpl(), std::move(slot));
  slots_.clear();
  for (size_t group = 0; group < param_groups_.size(); ++group) {
    const auto& parameters = param_groups_[group].params();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto found = known.find(parameters[i].unsafeGetTensorImpl());
      if (found != known.end()) {
        slots_.push_back(std::move(found->second));
        slots_.back().group = group;
        continue;
      }
      const auto dims = parameters[i].dim();
      slots_.push_back(
          {parameters[i], group, "group " + std::to_string(group) + " parameter " + std::to_string(i), dims == 1, false,
           std::to_string(dims) + "-D"});
    }
  }
  find_last();
  forget_measurements();
}

void SGDPH::find_last() {
  Slot* last = nullptr;
  for (auto& slot : slots_) {
    slot.last = false;
    if (slot.candidate) last = &slot;
  }
  if (last != nullptr) last->last = !by_module_ && wide().rule() == Rule::Reference;
}

bool SGDPH::is_marked(const Slot& slot) const {
  const auto* state = find_state_of<SGDPHParamState>(slot.parameter);
  return state != nullptr && state->shift_invariant();
}

bool SGDPH::is_block(const Slot& slot) const {
  return slot.candidate && !slot.last && options_of(slot).second_order() && !is_marked(slot);
}

Partition SGDPH::partition() {
  check();
  Partition partition;
  for (const auto& slot : slots_) {
    auto reason = slot.kind;
    if (slot.candidate) {
      if (!options_of(slot).second_order()) {
        reason += ", second_order(false) on its group";
      } else if (slot.last) {
        reason += ", the last 1-D parameter is first-order under Rule::Reference";
      } else if (is_marked(slot)) {
        reason += ", found shift-invariant";
      }
    }
    partition.entries.push_back({slot.name, slot.parameter, slot.group, is_block(slot), std::move(reason)});
  }
  return partition;
}

// --- Which blocks are due ------------------------------------------------------------------------------------------

bool SGDPH::published_schedule() const {
  return wide().rule() == Rule::Reference && wide().effective_refresh() == Refresh::Cyclic &&
         wide().refresh_every() == 1;
}

bool SGDPH::refresh_step() const {
  return step_ % wide().refresh_every() == 0;
}

/// The slots that take turns. As published, every 1-D parameter has a turn, also one that is first-order and lets it
/// pass; marked and frozen ones have left.
std::vector<size_t> SGDPH::rotation() const {
  const bool idle_turns = !by_module_ && wide().rule() == Rule::Reference;
  std::vector<size_t> members;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const auto& slot = slots_[i];
    const bool member = idle_turns ? slot.candidate && !is_marked(slot) : is_block(slot);
    if (member && slot.parameter.requires_grad()) members.push_back(i);
  }
  return members;
}

std::optional<size_t> SGDPH::next_turn() const {
  const auto members = rotation();
  if (members.empty()) return std::nullopt;
  const auto next = std::lower_bound(members.begin(), members.end(), cursor_);
  return next == members.end() ? members.front() : *next;
}

std::vector<size_t> SGDPH::due() const {
  if (measured_ || !refresh_step()) return {};
  std::vector<size_t> slots;
  if (wide().effective_refresh() == Refresh::Cyclic) {
    const auto next = next_turn();
    if (next && is_block(slots_[*next])) slots.push_back(*next);
  } else {
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (is_block(slots_[i]) && slots_[i].parameter.requires_grad()) slots.push_back(i);
    }
  }
  return slots;
}

void SGDPH::pass_turn() {
  if (wide().effective_refresh() != Refresh::Cyclic || !refresh_step()) return;
  const auto next = next_turn();
  if (!next || (is_block(slots_[*next]) && !measured_)) return;
  cursor_ = *next + 1;
  ++turns_;
}

// --- Measuring -----------------------------------------------------------------------------------------------------

bool SGDPH::wants_guard(const Slot& slot) const {
  if (!wide().shift_guard() || wide().probe() != Probe::Ones || has_probe_source()) return false;
  const auto* state = find_state_of<SGDPHParamState>(slot.parameter);
  return state == nullptr || !state->guard_checked();
}

CurvatureOptimizer::Request SGDPH::curvature_request() {
  Request request;
  for (const auto i : due()) {
    request.parameters.push_back(slots_[i].parameter);
    request.with_scale = request.with_scale || wants_guard(slots_[i]);
  }
  return request;
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

SGDPH::Measured SGDPH::measure_block(
    size_t slot, const at::Tensor& gradient, const std::vector<at::Tensor>& all, bool retain_graph) {
  const auto& parameter = slots_[slot].parameter;
  const bool guard = wants_guard(slots_[slot]);
  Measured measured;
  measured.slot = slot;
  const auto probe = probe_of(slot);
  measured.estimate = probe * hessian_vector_product(gradient, parameter, probe, retain_graph || guard);
  all_reduce(measured.estimate);
  if (guard) {
    const auto signs = rademacher_like(parameter, {wide().seed(), kGuardStream, slot, 0});
    measured.random_product = hessian_vector_product(gradient, parameter, signs, retain_graph);
    measured.gradient = gradient.detach().clone();
    auto scale = gradient_scale(all);
    all_reduce(measured.random_product);
    all_reduce(measured.gradient);
    all_reduce(scale);
    measured.gradient_scale = scale.item<double>();
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
      measured.push_back({slots[i], probes[i] * products[i], {}, {}, 0});
      all_reduce(measured.back().estimate);
    }
  } else {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const bool more = i + 1 < slots.size();
      measured.push_back(measure_block(slots[i], gradients[i], all, retain_graph || more));
    }
  }
  measurements_ = std::move(measured);
  measured_ = true;
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

// --- The step ------------------------------------------------------------------------------------------------------

int64_t SGDPH::count_non_finite() const {
  std::vector<at::Tensor> values;
  for (const auto& slot : slots_) values.push_back(slot.parameter.grad());
  for (const auto& measured : measurements_) {
    values.push_back(measured.estimate);
    values.push_back(measured.random_product);
  }
  return detail::count_non_finite(values);
}

void SGDPH::absorb_measurements() {
  std::string invariant;
  for (const auto& measured : measurements_) {
    const auto& slot = slots_[measured.slot];
    auto& state = state_of<SGDPHParamState>(slot.parameter);
    if (measured.random_product.defined()) {
      state.guard_checked(true);
      state.shift_invariant(
          is_shift_invariant(measured.estimate, measured.random_product, measured.gradient, measured.gradient_scale));
    }
    if (state.shift_invariant()) {
      invariant += (invariant.empty() ? "" : ", ") + slot.name;
      continue;
    }
    absorb_estimate(state, measured.estimate, options_of(slot));
    summary_.blocks_refreshed.push_back({slot.name, slot.parameter, measured.estimate});
  }
  if (!invariant.empty()) {
    TORCH_WARN("SGDPH: shift-invariant (row sum zero), first-order from now on: ", invariant);
  }
}

void SGDPH::step_parameter(Slot& slot, int64_t published_exponent) {
  const auto& options = options_of(slot);
  auto& state = state_of<SGDPHParamState>(slot.parameter);
  // A block not refreshed yet is first-order, except as published: there it divides by eps from the start.
  const bool published_start = published_schedule() && options.probe() != Probe::Hadamard;
  if (!is_block(slot) || (state.refreshes() == 0 && !published_start)) {
    first_order_step(slot.parameter, state, options);
    return;
  }
  const auto exponent = published_schedule() ? published_exponent : state.refreshes();
  auto curvature = rectified_curvature(state, slot.parameter, options, exponent);
  if (curvature_filter_) {
    curvature = curvature_filter_(curvature);
    TORCH_CHECK(
        curvature.defined() && curvature.sizes() == slot.parameter.sizes(), "SGDPH: the curvature filter must return ",
        "a tensor of the block's shape ", slot.parameter.sizes());
  }
  second_order_step(slot.parameter, state, options, curvature);
}

void SGDPH::update() {
  summary_ = {};
  summary_.products = products_done();
  summary_.non_finite = count_non_finite();
  summary_.applied = summary_.non_finite == 0;
  if (summary_.applied) {
    pass_turn();
    ++step_;
    absorb_measurements();
    const auto members = static_cast<int64_t>(rotation().size());
    const auto published_exponent = turns_ / std::max<int64_t>(members, 1) + 1;
    for (auto& slot : slots_) {
      if (slot.parameter.grad().defined()) step_parameter(slot, published_exponent);
    }
  }
  summary_.step = step_;
  forget_measurements();
}

// --- The archive ---------------------------------------------------------------------------------------------------

std::unique_ptr<torch::optim::OptimizerParamState> SGDPH::make_state() const {
  return std::make_unique<SGDPHParamState>();
}

std::unique_ptr<detail::Fields> SGDPH::progress() const {
  auto progress = std::make_unique<Progress>();
  progress->step = step_;
  progress->turns = turns_;
  progress->cursor = static_cast<int64_t>(cursor_);
  progress->by_module = by_module_;
  for (const auto& slot : slots_) progress->candidates.push_back(slot.candidate ? 1 : 0);
  return progress;
}

void SGDPH::check_progress(const detail::Fields& fields) const {
  const auto& progress = dynamic_cast<const Progress&>(fields);
  TORCH_CHECK(
      progress.step >= 0 && progress.turns >= 0 && progress.cursor >= 0 && progress.candidates.size() == slots_.size(),
      "SGDPH: the archive's step count or partition does not fit this optimizer");
}

void SGDPH::set_progress(detail::Fields& fields) {
  const auto& progress = dynamic_cast<const Progress&>(fields);
  step_ = progress.step;
  turns_ = progress.turns;
  cursor_ = static_cast<size_t>(progress.cursor);
  by_module_ = progress.by_module;
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].candidate = progress.candidates[i] != 0;
}

}  // namespace sgdph
