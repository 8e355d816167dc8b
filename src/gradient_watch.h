#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

namespace torch::autograd {
struct Node;
}

namespace sgdph {

/// Tells two things an optimizer is not told: that gradients were cleared, by the module's `zero_grad` say, which is
/// seen at the gradient of one parameter, and that a backward pass other than the optimizer's added to any of them.
class GradientWatch {
 public:
  GradientWatch() = default;
  ~GradientWatch();
  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;

  /// Follows this parameter from now on, and remembers its gradient if it has one. What passed by another one counts
  /// on.
  void follow(const at::Tensor& parameter);
  /// Passes that add to one of these are seen from now on, until `forget`: their nodes, which are kept for it, know the
  /// shape a parameter had.
  void see_passes(const std::vector<at::Tensor>& parameters);
  /// A new beginning: passes up to now do not count, and the gradient is as if never seen. May be called by a hook in
  /// the middle of a pass.
  void forget();

  /// Whether the gradients were cleared since this was last asked; passes before that no longer count. One that is gone
  /// or zero may also have been cancelled by itself, or be zero by nature: cleared are they if no other, of which
  /// `others_left` tells, has anything either.
  bool cleared(const std::function<bool()>& others_left);
  /// Whether the optimizer's own passes, or others, added to the gradient since the beginning.
  bool passed_ours() const;
  bool passed_others() const;
  /// The same of all parameters whose passes are seen: whether something is left of what was added.
  bool ours_left() const;
  bool others_left() const;
  bool both_left() const;

 private:
  struct State;
  struct Passes;

 public:
  /// Passes are the optimizer's while this lives.
  class Ours {
   public:
    explicit Ours(GradientWatch& watch);
    ~Ours();
    Ours(const Ours&) = delete;
    Ours& operator=(const Ours&) = delete;

   private:
    void set(bool under_way) const;

    std::shared_ptr<State> state_;
    std::vector<std::shared_ptr<Passes>> passes_;
  };

 private:
  template <class Watched>
  class Before;
  class After;
  template <class Watched>
  void watch_before(torch::autograd::Node& node, const std::shared_ptr<Watched>& watched) const;
  void take_hooks_off(torch::autograd::Node& node) const;
  template <class Which>
  bool any_pass(const Which& which) const;
  void stop();

  std::shared_ptr<State> state_;
  std::vector<std::shared_ptr<Passes>> passes_;  ///< of each parameter
};

}  // namespace sgdph
