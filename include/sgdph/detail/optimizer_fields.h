#pragma once

#include <sgdph/optimizer.h>

#include <memory>
#include <utility>
#include <vector>

namespace sgdph::detail {

/// What an archive keeps of an optimizer, as named fields: for bindings that keep it in a form of their own.
class OptimizerFields {
 public:
  using State = std::unique_ptr<torch::optim::OptimizerParamState>;
  using States = std::vector<std::pair<at::Tensor, State>>;

  explicit OptimizerFields(OptimizerBase& optimizer) : optimizer_(optimizer) {}

  /// Brings the optimizer in line with its groups, and refuses options out of range.
  void check() const { optimizer_.check(); }

  /// What is kept for a parameter; null if nothing is.
  Fields* state(const at::Tensor& parameter) const {
    // The optimizer is not const here, so its states are not.
    return dynamic_cast<Fields*>(const_cast<torch::optim::OptimizerParamState*>(optimizer_.find_state(parameter)));
  }
  State make_state() const { return optimizer_.make_state(); }

  /// What belongs to no single parameter, a copy; null if there is nothing.
  std::unique_ptr<Fields> progress() const { return optimizer_.progress(); }

  /// Replaces all states, and the progress unless it is null. Nothing has changed if something does not fit.
  void restore(States states, Fields* progress) const { optimizer_.restore(std::move(states), progress); }

 private:
  OptimizerBase& optimizer_;
};

}  // namespace sgdph::detail
