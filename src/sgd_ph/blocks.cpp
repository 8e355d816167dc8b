#include <sgdph/sgd_ph.h>

#include <torch/types.h>

#include <unordered_map>

// SGDPH: which parameters are blocks, and which of them are due.

namespace sgdph {

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
  Slot* last = nullptr;
  for (auto& slot : slots_) {
    slot.last = false;
    if (slot.candidate) last = &slot;
  }
  if (last != nullptr) last->last = true;
  forget_measurements();
}

bool SGDPH::excludes_last() const {
  return !by_module_ && wide().rule() == Rule::Reference;
}

bool SGDPH::is_marked(const Slot& slot) const {
  const auto* state = find_state_of<SGDPHParamState>(slot.parameter);
  return state != nullptr && state->shift_invariant();
}

bool SGDPH::is_block(const Slot& slot) const {
  return slot.candidate && !(slot.last && excludes_last()) && options_of(slot).second_order() && !is_marked(slot);
}

Partition SGDPH::partition() const {
  Partition partition;
  for (const auto& slot : slots_) {
    auto reason = slot.kind;
    if (slot.candidate) {
      if (!options_of(slot).second_order()) {
        reason += ", second_order(false) on its group";
      } else if (slot.last && excludes_last()) {
        reason += ", the last 1-D parameter is first-order under Rule::Reference";
      } else if (is_marked(slot)) {
        reason += ", found shift-invariant";
      }
    }
    partition.entries.push_back({slot.name, slot.parameter, slot.group, is_block(slot), std::move(reason)});
  }
  return partition;
}

bool SGDPH::refresh_step() const {
  return step_ % wide().refresh_every() == 0;
}

/// The slots that take turns. As published, every 1-D parameter has a turn, also one that is first-order and lets it
/// pass; marked and frozen ones have left.
std::vector<size_t> SGDPH::rotation_members() const {
  std::vector<size_t> members;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const auto& slot = slots_[i];
    const bool member = excludes_last() ? slot.candidate && !is_marked(slot) : is_block(slot);
    if (member && slot.parameter.requires_grad()) members.push_back(i);
  }
  return members;
}

std::vector<size_t> SGDPH::due() const {
  if ((measured_ && usable_) || !refresh_step()) return {};
  std::vector<size_t> slots;
  if (wide().effective_refresh() == Refresh::Cyclic) {
    const auto next = rotation_.next(rotation_members());
    if (next && is_block(slots_[*next])) slots.push_back(*next);
  } else {
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (is_block(slots_[i]) && slots_[i].parameter.requires_grad()) slots.push_back(i);
    }
  }
  return slots;
}

CurvatureOptimizer::Request SGDPH::curvature_request() {
  Request request;
  for (const auto i : due()) {
    request.parameters.push_back(slots_[i].parameter);
    request.with_scale = request.with_scale || wants_guard(slots_[i]);
  }
  return request;
}

}  // namespace sgdph
