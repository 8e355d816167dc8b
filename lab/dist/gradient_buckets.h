#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sgdph::lab::dist {

class Group;

/// Sums gradients over ranks while backward is still under way. Parameters are packed into buckets, the last ones of
/// the network first; a bucket is sent as soon as its gradients are there and the buckets before it were sent, the same
/// order on every rank. `finish` waits, so a Hessian product between backward and the step hides the transfer.
///
/// Each bucket ends with a flag per parameter that counts the ranks which have a gradient: where no rank has one it
/// stays undefined, and where only some have, the others count as zero.
class GradientBuckets {
 public:
  static constexpr int64_t kBytes = 8 << 20;

  /// The parameters must be dense leaves and stay on device and type; those that need no gradient are passed over. The
  /// group must outlive this.
  GradientBuckets(const std::vector<at::Tensor>& parameters, Group& group, int64_t bytes = kBytes);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  /// The next backward pass is the step's last. Passes before it only accumulate.
  void arm();
  /// Sends what was not sent, waits, and puts the sums in place of the gradients. Every rank calls it once a step, also
  /// one that had nothing to differentiate.
  void finish();

  size_t count() const;
  /// How many were under way when `finish` was called last: sent during backward.
  size_t sent_early() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< shared with the hooks
};

}  // namespace sgdph::lab::dist
