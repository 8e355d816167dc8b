#include <sgdph/sgd_ph_state.h>

namespace sgdph {

void SGDPHParamState::visit(detail::FieldVisitor& visitor) {
  visitor("momentum_buffer", momentum_buffer_);
  visitor("curvature", curvature_);
  visitor("cycle_sum", cycle_sum_);
  visitor("refreshes", refreshes_);
  visitor("guard_checked", guard_checked_);
  visitor("shift_invariant", shift_invariant_);
}

}  // namespace sgdph
