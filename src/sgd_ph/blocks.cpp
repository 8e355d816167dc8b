#include "sgd_ph/blocks.h"

#include "sgd_ph/shift_guard.h"

#include <algorithm>
#include <unordered_map>

namespace sgdph::sgd_ph {
namespace {

using torch::optim::OptimizerParamGroup;

/// A parameter of which nothing is known but its shape.
Slot slot_by_shape(const at::Tensor& parameter, size_t group, size_t index) {
  Slot slot;
  slot.parameter = parameter;
  slot.group = group;
  slot.name = "group " + std::to_string(group) + " parameter " + std::to_string(index);
  slot.candidate = parameter.dim() == 1 && !parameter.is_complex();
  slot.kind = parameter.is_complex() ? "complex" : std::to_string(parameter.dim()) + "-D";
  return slot;
}

/// A slot for each parameter of the groups: a known one with what is known of it, else by shape.
std::vector<Slot> slots_of(
    const std::vector<OptimizerParamGroup>& groups, const std::vector<Slot>& slots, bool published) {
  std::unordered_map<const at::TensorImpl*, const Slot*> known;
  for (const auto& slot : slots) known.emplace(slot.parameter.unsafeGetTensorImpl(), &slot);
  std::vector<Slot> found;
  for (size_t group = 0; group < groups.size(); ++group) {
    const auto& parameters = groups[group].params();
    for (size_t i = 0; i < parameters.size(); ++i) {
      auto slot = slot_by_shape(parameters[i], group, i);
      if (const auto old = known.find(parameters[i].unsafeGetTensorImpl()); old != known.end()) {
        const auto name = slot.name;
        slot = *old->second;
        slot.group = group;
        if (!slot.named) slot.name = name;
      } else if (!published && slot.candidate) {
        slot.candidate = false;
        slot.kind += ", added without a module";
      }
      found.push_back(std::move(slot));
    }
  }
  return found;
}

}  // namespace

const SGDPHOptions& shared_options(const SGDPH& optimizer) {
  return static_cast<const SGDPHOptions&>(optimizer.defaults());
}

const SGDPHOptions& options_of(const SGDPH& optimizer, const Slot& slot) {
  return static_cast<const SGDPHOptions&>(optimizer.param_groups()[slot.group].options());
}

Blocks::Blocks(std::vector<ClassifiedParameter> parameters, bool published) : published_(published) {
  expect(std::move(parameters));
}

void Blocks::expect(std::vector<ClassifiedParameter> parameters) {
  for (auto& item : parameters) {
    Slot slot;
    slot.parameter = std::move(item.parameter);
    slot.name = std::move(item.name);
    slot.named = true;
    slot.candidate = item.block;
    slot.kind = std::move(item.kind);
    slot.local_name = std::move(item.local_name);
    slot.module = std::move(item.module);
    slots_.push_back(std::move(slot));
  }
}

void Blocks::follow(const std::vector<OptimizerParamGroup>& groups) {
  slots_ = slots_of(groups, slots_, published_);
  Slot* last = nullptr;
  for (auto& slot : slots_) {
    slot.last = false;
    if (slot.candidate) last = &slot;
  }
  if (last != nullptr) last->last = true;
}

Standing Blocks::standing_of(const SGDPH& optimizer, const Slot& slot) const {
  if (!slot.candidate) return {};
  const auto& shared = shared_options(optimizer);
  const auto* state = optimizer.param_state(slot.parameter);
  const auto finding = state == nullptr ? Finding::Unknown : state->finding();
  const bool trains = slot.parameter.requires_grad();
  Standing standing;
  standing.absent = state != nullptr && state->missed() >= kTurnsToMiss;
  if (!options_of(optimizer, slot).second_order()) {
    standing.reason = ", second_order(false) on its group";
  } else if (slot.last && published_ && shared.rule() == Rule::Reference) {
    standing.reason = ", the last 1-D parameter is first-order under Rule::Reference";
    standing.has_turn = trains;  // as published
  } else if (finding == Finding::NotMeasurable) {
    standing.reason = ", not measurable: its gradient carries no graph";
    standing.has_turn = standing.look = trains;
  } else if (guard_is_on(shared) && is_waiting(finding)) {
    standing.reason = finding == Finding::ShiftInvariant ? ", found shift-invariant"
                      : finding == Finding::Suspect      ? ", its row sum vanished at the last look"
                                                         : ", no curvature above rounding so far";
    standing.look = trains && guard_looks(shared, state);
    standing.waits = trains && !standing.look;
  } else {
    standing.block = true;
    standing.has_turn = trains;
    if (standing.absent) standing.reason = ", no loss has reached it in its last 20 turns";
  }
  return standing;
}

std::vector<Standing> Blocks::standings(const SGDPH& optimizer) const {
  std::vector<Standing> standings;
  standings.reserve(slots_.size());
  for (const auto& slot : slots_) standings.push_back(standing_of(optimizer, slot));
  return standings;
}

Partition Blocks::partition(const SGDPH& optimizer) const {
  Partition partition;
  for (const auto& slot : slots_) {
    const auto standing = standing_of(optimizer, slot);
    partition.entries.push_back({slot.name, slot.parameter, slot.group, standing.block, slot.kind + standing.reason});
  }
  return partition;
}

std::pair<ParameterInfo, std::shared_ptr<const torch::nn::Module>> Blocks::info_of(const Slot& slot) {
  auto module = slot.module.lock();
  ParameterInfo info{slot.name, slot.parameter, module.get(), slot.local_name};
  info.role = slot.candidate ? Role::Block : Role::FirstOrder;
  return {std::move(info), std::move(module)};
}

Blocks::Record Blocks::record(const std::vector<OptimizerParamGroup>& groups) const {
  Record record;
  record.by_module = !published_;
  for (const auto& slot : slots_of(groups, slots_, published_)) {
    record.candidates.push_back(slot.candidate ? 1 : 0);
    record.names.push_back(slot.named ? slot.name : "");
    record.kinds.push_back(slot.kind);
  }
  return record;
}

void Blocks::restore(const Record& record) {
  published_ = !record.by_module;
  for (size_t i = 0; i < slots_.size(); ++i) {
    auto& slot = slots_[i];
    const bool candidate = record.candidates[i] != 0;
    if (!record.kinds.empty()) {
      slot.kind = record.kinds[i];
    } else if (candidate != slot.candidate) {
      slot.kind += candidate ? ", a block by the archive" : ", first-order by the archive";
    }
    slot.candidate = candidate;
    if (!slot.named && !record.names.empty() && !record.names[i].empty()) {
      slot.named = true;
      slot.name = record.names[i];
    }
  }
}

}  // namespace sgdph::sgd_ph
