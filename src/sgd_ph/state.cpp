#include <sgdph/sgd_ph_state.h>

#include "sgd_ph/shift_guard.h"

namespace sgdph {

void SGDPHParamState::visit(detail::FieldVisitor& visitor) {
  visitor("momentum_buffer", momentum_buffer_);
  visitor("curvature", curvature_);
  visitor("cycle_sum", cycle_sum_);
  visitor("refreshes", refreshes_);
  if (visitor.format() >= 3) {
    visitor("age", age_);
  } else {
    age_ = static_cast<double>(refreshes_);
  }
  if (visitor.format() < 2) {
    // One look at the first refresh, and its outcome for ever.
    bool marked = false;
    visitor("shift_invariant", marked);
    finding_ = marked ? Finding::ShiftInvariant : refreshes_ > 0 ? Finding::Curved : Finding::Unknown;
    next_look_ = marked ? sgd_ph::kTurnsBetweenLooks : refreshes_ > 0 ? sgd_ph::kNever : 0;
    return;
  }
  visitor("master", master_);
  visitor("finding", finding_);
  visitor("turns", turns_);
  visitor("next_look", next_look_);
  if (visitor.format() >= 4) visitor("missed", missed_);
}

}  // namespace sgdph
