#include "detail/optimizer_record.h"

#include "detail/compat.h"
#include "detail/option_fields.h"

#include <typeinfo>

namespace sgdph::detail {
namespace {

void append(std::vector<uint64_t>& values, const torch::optim::OptimizerOptions& options) {
  values.push_back(typeid(options).hash_code());
  // Options of another optimizer, which the check refuses, need not be ours.
  if (const auto* fields = dynamic_cast<const Fields*>(&options)) append_raw_values(*fields, values);
}

}  // namespace

bool OptimizerRecord::has_options(const torch::optim::OptimizerOptions& defaults, const Groups& groups) {
  seen_options_.clear();
  append(seen_options_, defaults);
  for (const auto& group : groups) append(seen_options_, group.options());
  return seen_options_ == options_;
}

bool OptimizerRecord::has_parameters(const Groups& groups) const {
  auto next = order_.begin();
  const auto is_next = [&](const at::TensorImpl* expected) { return next != order_.end() && *next++ == expected; };
  for (const auto& group : groups) {
    for (const auto& parameter : group.params()) {
      if (!is_next(parameter.unsafeGetTensorImpl())) return false;
    }
    if (!is_next(nullptr)) return false;
  }
  return next == order_.end();
}

void OptimizerRecord::keep_parameters(const Groups& groups, const States& states) {
  order_.clear();
  present_ = 0;
  for (const auto& group : groups) {
    for (const auto& parameter : group.params()) {
      auto* const address = parameter.unsafeGetTensorImpl();
      order_.push_back(address);
      ++present_;
      if (known_.count(address) != 0) continue;
      known_.emplace(address, Known{WeakTensor(parameter.getIntrusivePtr()), state_key(states, parameter)});
    }
    order_.push_back(nullptr);
  }
}

void OptimizerRecord::drop_dead(States& states) {
  if (known_.size() == present_) return;
  for (auto item = known_.begin(); item != known_.end();) {
    if (item->second.tensor.expired()) {
      states.erase(item->second.key);
      item = known_.erase(item);
    } else {
      ++item;
    }
  }
}

const OptimizerRecord::StateKey* OptimizerRecord::key_of(const at::Tensor& parameter) const {
  const auto found = known_.find(parameter.unsafeGetTensorImpl());
  return found == known_.end() ? nullptr : &found->second.key;
}

}  // namespace sgdph::detail
