#include "sgd_ph/blocks.h"

#include "sgd_ph/module_blocks.h"

#include <unordered_map>

namespace sgdph::sgd_ph {
namespace {

using torch::optim::OptimizerParamGroup;

bool is_candidate_by_shape(const at::Tensor& parameter) {
  return parameter.dim() == 1;
}

}  // namespace

const SGDPHOptions& shared_options(const SGDPH& optimizer) {
  return static_cast<const SGDPHOptions&>(optimizer.defaults());
}

const SGDPHOptions& options_of(const SGDPH& optimizer, const Slot& slot) {
  return static_cast<const SGDPHOptions&>(optimizer.param_groups()[slot.group].options());
}

Blocks::Blocks(const torch::nn::Module& module) : by_module_(true) {
  for (const auto& item : classify_parameters(module)) {
    slots_.push_back({item.parameter, 0, item.name, item.block, false, item.kind});
  }
}

void Blocks::follow(const std::vector<OptimizerParamGroup>& groups) {
  std::unordered_map<const at::TensorImpl*, Slot> known;
  for (auto& slot : slots_) known.emplace(slot.parameter.unsafeGetTensorImpl(), std::move(slot));
  slots_.clear();
  for (size_t group = 0; group < groups.size(); ++group) {
    const auto& parameters = groups[group].params();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto found = known.find(parameters[i].unsafeGetTensorImpl());
      if (found != known.end()) {
        slots_.push_back(std::move(found->second));
        slots_.back().group = group;
        continue;
      }
      slots_.push_back(
          {parameters[i], group, "group " + std::to_string(group) + " parameter " + std::to_string(i),
           is_candidate_by_shape(parameters[i]), false, std::to_string(parameters[i].dim()) + "-D"});
    }
  }
  Slot* last = nullptr;
  for (auto& slot : slots_) {
    slot.last = false;
    if (slot.candidate) last = &slot;
  }
  if (last != nullptr) last->last = true;
}

Role Blocks::role_of(const SGDPH& optimizer, const Slot& slot) const {
  if (!slot.candidate) return {};
  Role role;
  const bool excludes_last = !by_module_ && shared_options(optimizer).rule() == Rule::Reference;
  const auto* state = optimizer.param_state(slot.parameter);
  const bool marked = state != nullptr && state->shift_invariant();
  if (!options_of(optimizer, slot).second_order()) {
    role.reason = ", second_order(false) on its group";
  } else if (slot.last && excludes_last) {
    role.reason = ", the last 1-D parameter is first-order under Rule::Reference";
  } else if (marked) {
    role.reason = ", found shift-invariant";
  } else {
    role.block = true;
  }
  // As published, every 1-D parameter has a turn, also one that is first-order; marked and frozen ones have left.
  role.has_turn = slot.parameter.requires_grad() && (excludes_last ? !marked : role.block);
  return role;
}

std::vector<Role> Blocks::roles(const SGDPH& optimizer) const {
  std::vector<Role> roles;
  roles.reserve(slots_.size());
  for (const auto& slot : slots_) roles.push_back(role_of(optimizer, slot));
  return roles;
}

Partition Blocks::partition(const SGDPH& optimizer) const {
  Partition partition;
  for (const auto& slot : slots_) {
    const auto role = role_of(optimizer, slot);
    partition.entries.push_back({slot.name, slot.parameter, slot.group, role.block, slot.kind + role.reason});
  }
  return partition;
}

std::vector<int64_t> Blocks::candidates(const std::vector<OptimizerParamGroup>& groups) const {
  std::unordered_map<const at::TensorImpl*, bool> known;
  for (const auto& slot : slots_) known.emplace(slot.parameter.unsafeGetTensorImpl(), slot.candidate);
  std::vector<int64_t> candidates;
  for (const auto& group : groups) {
    for (const auto& parameter : group.params()) {
      const auto found = known.find(parameter.unsafeGetTensorImpl());
      candidates.push_back(found == known.end() ? is_candidate_by_shape(parameter) : found->second);
    }
  }
  return candidates;
}

void Blocks::restore(bool by_module, const std::vector<int64_t>& candidates) {
  by_module_ = by_module;
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].candidate = candidates[i] != 0;
}

}  // namespace sgdph::sgd_ph
