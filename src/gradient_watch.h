#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace sgdph {

/// Follows the gradient of one parameter to tell two things an optimizer is not told: that gradients were cleared, by
/// the module's `zero_grad` say, and that a backward pass other than the optimizer's added to them.
class GradientWatch {
 public:
  GradientWatch() = default;
  ~GradientWatch();
  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;

  /// Follows this parameter from now on, and remembers its gradient if it has one. What passed by another one counts
  /// on.
  void follow(const at::Tensor& parameter);
  /// A new beginning: passes up to now do not count, and the gradient is as if never seen.
  void forget();

  /// Whether the gradients were cleared since this was last asked; passes before that no longer count. One that is gone
  /// or zero may also have been cancelled by itself, or be zero by nature: cleared are they if no other, of which
  /// `others_left` tells, has anything either.
  bool cleared(const std::function<bool()>& others_left);
  /// Whether the optimizer's own passes, or others, added to the gradient since the beginning.
  bool passed_ours() const;
  bool passed_others() const;

  /// Passes are the optimizer's while this lives.
  class Ours {
   public:
    explicit Ours(GradientWatch& watch);
    ~Ours();
    Ours(const Ours&) = delete;
    Ours& operator=(const Ours&) = delete;

   private:
    GradientWatch& watch_;
  };

 private:
  struct State;
  class Hook;
  void stop();

  std::shared_ptr<State> state_;
};

}  // namespace sgdph
