#pragma once

#include <sgdph/detail/fields.h>

namespace sgdph {

/// What SGDPH keeps for one parameter.
struct SGDPHParamState : public detail::StateBase<SGDPHParamState> {
  TORCH_ARG(at::Tensor, momentum_buffer) = {};
  /// The estimate over time. Ones: the average of |row sum| (Paper: of |row sum| + eps); Rademacher: the average of the
  /// signed estimate; Hadamard: the mean of the last complete cycle, before that of what there is.
  TORCH_ARG(at::Tensor, curvature) = {};
  TORCH_ARG(at::Tensor, cycle_sum) = {};  ///< Hadamard: sum over the cycle under way
  TORCH_ARG(int64_t, refreshes) = 0;
  TORCH_ARG(bool, guard_checked) = false;
  TORCH_ARG(bool, shift_invariant) = false;  ///< marked by the shift guard: first-order from then on

 public:
  void visit(detail::FieldVisitor& visitor) override;
};

}  // namespace sgdph
