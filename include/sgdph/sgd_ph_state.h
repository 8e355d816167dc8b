#pragma once

#include <sgdph/api.h>
#include <sgdph/detail/fields.h>

namespace sgdph {

/// What is known of a block's curvature from the turns at which it was looked at.
enum class Finding {
  Unknown,         ///< not looked at yet
  Curved,          ///< there is curvature, and the row sum is more than rounding
  NoEvidence,      ///< product and gradient were not above rounding: nothing can be said so far
  Suspect,         ///< the row sum vanished at the last look
  ShiftInvariant,  ///< it did at two looks in a row: marked
  NotMeasurable,   ///< its gradient carried no graph
};
template <>
struct detail::EnumNames<Finding> {
  static constexpr const char* kNames[] = {"Unknown", "Curved",         "NoEvidence",
                                           "Suspect", "ShiftInvariant", "NotMeasurable"};
};

/// What SGDPH keeps for one parameter.
struct SGDPH_API SGDPHParamState : public detail::StateBase<SGDPHParamState> {
  TORCH_ARG(at::Tensor, momentum_buffer) = {};
  /// The parameter in float32, where its own type has fewer digits and it is a block, or `master_weights` is set. The
  /// parameter is this one rounded. Momentum and curvature are float32 then, too.
  TORCH_ARG(at::Tensor, master) = {};
  /// The estimate over time. Ones: the average of |row sum| (Paper: of |row sum| + eps); Rademacher: the average of the
  /// signed estimate; Hadamard: the mean of the last complete cycle, before that of what there is.
  TORCH_ARG(at::Tensor, curvature) = {};
  TORCH_ARG(at::Tensor, cycle_sum) = {};  ///< Hadamard: sum over the cycle under way
  TORCH_ARG(int64_t, refreshes) = 0;
  TORCH_ARG(double, age) = 0;  ///< of the average: refreshes, of which one under Refresh::Spread counts in part
  TORCH_ARG(Finding, finding) = Finding::Unknown;
  TORCH_ARG(int64_t, turns) = 0;      ///< that came, be it that the block was measured or let it pass
  TORCH_ARG(int64_t, missed) = 0;     ///< turns in a row that have passed without a loss that reached the block
  TORCH_ARG(int64_t, next_look) = 0;  ///< number of the turn at which the shift guard looks next

 public:
  /// Marked by the shift guard: first-order unless the mark is taken back.
  bool shift_invariant() const { return finding_ == Finding::ShiftInvariant; }

  void visit(detail::FieldVisitor& visitor) override;
};

}  // namespace sgdph
