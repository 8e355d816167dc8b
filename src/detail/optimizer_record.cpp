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
  const auto is_next = [&](const at::Tensor* parameter) {
    if (next == order_.end()) return false;
    const auto* const known = *next++;
    if (known == nullptr || parameter == nullptr) return known == nullptr && parameter == nullptr;
    return known->address == parameter->unsafeGetTensorImpl() && known->look.is_of(*parameter);
  };
  for (const auto& group : groups) {
    for (const auto& parameter : group.params()) {
      if (!is_next(&parameter)) return false;
    }
    if (!is_next(nullptr)) return false;
  }
  return next == order_.end();
}

std::vector<OptimizerRecord::Changed> OptimizerRecord::keep_parameters(const Groups& groups, const States& states) {
  std::vector<Changed> changed;
  order_.clear();
  present_ = 0;
  for (const auto& group : groups) {
    for (const auto& parameter : group.params()) {
      auto* const address = parameter.unsafeGetTensorImpl();
      auto found = known_.find(address);
      if (found == known_.end()) {
        Known known{address, WeakTensor(parameter.getIntrusivePtr()), state_key(states, parameter), Look(parameter)};
        found = known_.emplace(address, std::move(known)).first;
      } else if (auto& look = found->second.look; !look.is_of(parameter)) {
        changed.push_back({parameter, parameter.sizes() != look.sizes});
        look = Look(parameter);
      }
      order_.push_back(&found->second);
      ++present_;
    }
    order_.push_back(nullptr);
  }
  return changed;
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
