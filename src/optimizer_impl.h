#pragma once

#include <sgdph/optimizer.h>

#include "detail/optimizer_record.h"

#include <string>
#include <vector>

// What the sources of OptimizerBase share.

namespace sgdph {

struct SGDPH_LOCAL OptimizerBase::Impl {
  std::string name;
  detail::OptimizerRecord record;  ///< what it was at the last check

  /// Of the parameters that move; refuses those an update could not take.
  std::vector<at::Tensor> checked_gradients(const std::vector<torch::optim::OptimizerParamGroup>& groups) const;
};

namespace detail {

inline const CheckedOptions& checked(const torch::optim::OptimizerOptions& options) {
  return dynamic_cast<const CheckedOptions&>(options);
}
inline Fields& fields(torch::optim::OptimizerOptions& options) {
  return dynamic_cast<Fields&>(options);
}
inline Fields& fields(torch::optim::OptimizerParamState& state) {
  return dynamic_cast<Fields&>(state);
}

/// How messages call a group.
inline std::string group_name(const std::string& optimizer, size_t group) {
  return optimizer + ", group " + std::to_string(group);
}

/// Refuses a group whose optimizer-wide options are not those of the defaults.
void check_shared(
    const std::string& name, const torch::optim::OptimizerOptions& defaults,
    const std::vector<const torch::optim::OptimizerOptions*>& groups);

/// Brings a state's tensors to the device and type of its parameter. Returns what does not fit, to follow "the
/// archive's"; empty if all does.
std::string fit_to_parameter(torch::optim::OptimizerParamState& state, const at::Tensor& parameter);

}  // namespace detail
}  // namespace sgdph
