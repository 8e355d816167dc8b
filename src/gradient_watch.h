#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace sgdph {

/// Tells two things an optimizer is not told: that gradients were cleared, by the module's `zero_grad` say, and that a
/// backward pass other than the optimizer's added to them. It goes by hooks on the parameters themselves, since a node
/// that was kept for it would know the shape a parameter had.
class GradientWatch {
 public:
  GradientWatch();
  ~GradientWatch();
  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;

  /// Passes that add to those of these that are leaves are seen from now on. To be called again now and then: the first
  /// hook a user gives to a leaf drops those that were there.
  void watch(std::vector<at::Tensor> parameters);
  /// A new beginning: passes up to now do not count. May be called by a hook in the middle of a pass, of which the rest
  /// does not count either.
  void forget();
  /// Something belongs to the gradients as they are, and to no pass: that they are cleared ends it as well, as far as
  /// there are any. Until the next pass, which they are those of from then on.
  void hold();

  /// Whether the gradients were cleared since this was last asked; passes before that no longer count. Cleared they are
  /// if of all that passes have added to nothing is left: a single one may be cancelled, or be zero by nature.
  bool cleared();
  /// Whether something is left of what the optimizer's own passes, or others, have added since the beginning.
  bool ours_left() const;
  bool others_left() const;
  bool both_left() const;

 private:
  struct State;

 public:
  /// Passes are the optimizer's while this lives.
  class Ours {
   public:
    explicit Ours(GradientWatch& watch);
    ~Ours();
    Ours(const Ours&) = delete;
    Ours& operator=(const Ours&) = delete;

   private:
    std::shared_ptr<State> state_;
    int before_;
  };

 private:
  struct Leaf;
  class Hook;
  template <class Which>
  bool any(const Which& which) const;

  std::shared_ptr<State> state_;
};

}  // namespace sgdph
