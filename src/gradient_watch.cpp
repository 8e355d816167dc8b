#include "gradient_watch.h"

#include "detail/compat.h"

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/types.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace sgdph {
namespace {

using torch::autograd::variable_list;
using WeakTensor = c10::weak_intrusive_ptr<at::TensorImpl, c10::UndefinedTensorImpl>;

uint32_t version_of(const at::Tensor& gradient) {
  return gradient.is_inference() ? 0 : gradient._version();
}

bool is_zero(const at::Tensor& gradient) {
  return !gradient.is_sparse() && !gradient.detach().ne(0).any().item<bool>();
}

}  // namespace

struct GradientWatch::State {
  at::Tensor parameter;
  detail::NodePtr node;  ///< where passes add to the gradient
  uintptr_t hook = 0;
  bool ours = false;  ///< a pass of the optimizer is under way
  // Since the beginning.
  bool seen = false;
  std::optional<WeakTensor> gradient;  ///< as last seen; weak, since memory that was let go is to be free
  uint32_t version = 0;
  bool passed_ours = false;
  bool passed_others = false;
  bool ended = false;  ///< the gradient was cleared, and a pass has come since

  void remember() {
    const auto& now = parameter.grad();
    seen = now.defined();
    if (!seen) return;
    gradient.emplace(now.getIntrusivePtr());
    version = version_of(now);
  }
  bool is_same(const at::Tensor& now) const { return gradient->_unsafe_get_target() == now.unsafeGetTensorImpl(); }

  void forget() { seen = passed_ours = passed_others = ended = false; }

  bool is_cleared() {
    if (!seen) return false;
    const auto& now = parameter.grad();
    if (!now.defined()) return true;
    if (is_same(now) && version_of(now) == version) return false;
    if (is_zero(now)) return true;
    remember();  // scaled or clipped: looked at once
    return false;
  }

  /// Called when a pass has added `added`.
  void passed(const at::Tensor& added) {
    const auto& now = parameter.grad();
    const bool untouched = seen && now.defined() && is_same(now) && version_of(now) == version + 1;
    // Cleared before the pass: what there is now is what came in.
    if (!ours && seen && !untouched && now.defined() && !now.is_sparse() && at::equal(now, added)) {
      forget();
      ended = true;
    }
    (ours ? passed_ours : passed_others) = true;
    remember();
  }
};

class GradientWatch::Hook final : public torch::autograd::FunctionPostHook {
 public:
  explicit Hook(std::weak_ptr<State> state) : state_(std::move(state)) {}
  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    const auto state = state_.lock();
    if (state && !inputs.empty() && inputs[0].defined()) state->passed(inputs[0]);
    return outputs;
  }

 private:
  std::weak_ptr<State> state_;
};

/// Which passes have added to the gradient of a parameter.
struct GradientWatch::Passes {
  at::Tensor parameter;
  detail::NodePtr node;
  uintptr_t hook = 0;
  bool under_way = false;  ///< one of the optimizer's
  bool ours = false, others = false;

  void passed(const at::Tensor& added) {
    auto& here = under_way ? ours : others;
    auto& there = under_way ? others : ours;
    const auto& now = parameter.grad();
    // Cleared before the pass: what there is now is what came in.
    if (there && now.defined() && !now.is_sparse() && at::equal(now, added)) there = false;
    here = true;
  }
  bool is_left() const { return parameter.grad().defined() && !is_zero(parameter.grad()); }
};

class GradientWatch::PassHook final : public torch::autograd::FunctionPostHook {
 public:
  explicit PassHook(std::weak_ptr<Passes> passes) : passes_(std::move(passes)) {}
  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    const auto passes = passes_.lock();
    if (passes && !inputs.empty() && inputs[0].defined()) passes->passed(inputs[0]);
    return outputs;
  }

 private:
  std::weak_ptr<Passes> passes_;
};

GradientWatch::~GradientWatch() {
  stop();
  stop_seeing();
}

void GradientWatch::stop_seeing() {
  for (const auto& one : passes_) one->node->del_post_hook(one->hook);
  passes_.clear();
}

void GradientWatch::see_passes(const std::vector<at::Tensor>& parameters) {
  std::vector<std::shared_ptr<Passes>> seen;
  bool same = true;
  for (const auto& parameter : parameters) {
    if (!parameter.is_leaf()) continue;
    const auto node = torch::autograd::impl::gradient_edge(parameter).function;
    const auto i = seen.size();
    if (same && i < passes_.size() && passes_[i]->node == node) {
      seen.push_back(passes_[i]);
      continue;
    }
    same = false;
    const auto known = std::find_if(
        passes_.begin(), passes_.end(), [&node](const std::shared_ptr<Passes>& one) { return one->node == node; });
    if (known != passes_.end()) {
      seen.push_back(*known);
      continue;
    }
    seen.push_back(std::make_shared<Passes>());
    seen.back()->parameter = parameter;
    seen.back()->node = node;
    seen.back()->hook = node->add_post_hook(std::make_unique<PassHook>(seen.back()));
  }
  if (same && seen.size() == passes_.size()) return;
  for (const auto& one : passes_) {
    if (std::find(seen.begin(), seen.end(), one) == seen.end()) one->node->del_post_hook(one->hook);
  }
  passes_ = std::move(seen);
}

bool GradientWatch::ours_left() const {
  return std::any_of(passes_.begin(), passes_.end(), [](const auto& one) { return one->ours && one->is_left(); });
}

bool GradientWatch::others_left() const {
  return std::any_of(passes_.begin(), passes_.end(), [](const auto& one) { return one->others && one->is_left(); });
}

void GradientWatch::stop() {
  if (state_) state_->node->del_post_hook(state_->hook);
  state_.reset();
}

void GradientWatch::follow(const at::Tensor& parameter) {
  // A parameter that moved to another type or device has a new node.
  const auto node = torch::autograd::impl::gradient_edge(parameter).function;
  if (state_ && state_->node == node) return;
  const bool ours = passed_ours(), others = passed_others();
  stop();
  state_ = std::make_shared<State>();
  state_->passed_ours = ours;
  state_->passed_others = others;
  state_->parameter = parameter;
  state_->node = node;
  state_->hook = node->add_post_hook(std::make_unique<Hook>(state_));
  state_->remember();
}

void GradientWatch::forget() {
  if (state_) state_->forget();
  stop_seeing();
}

bool GradientWatch::cleared(const std::function<bool()>& others_left) {
  if (!state_) return false;
  const bool before = std::exchange(state_->ended, false);
  if (!state_->is_cleared()) return before;
  if (others_left()) {
    state_->remember();
    return before;
  }
  forget();
  return true;
}

bool GradientWatch::passed_ours() const {
  return state_ && state_->passed_ours;
}

bool GradientWatch::passed_others() const {
  return state_ && state_->passed_others;
}

GradientWatch::Ours::Ours(GradientWatch& watch) : watch_(watch) {
  if (watch_.state_) watch_.state_->ours = true;
  for (const auto& one : watch_.passes_) one->under_way = true;
}

GradientWatch::Ours::~Ours() {
  if (watch_.state_) watch_.state_->ours = false;
  for (const auto& one : watch_.passes_) one->under_way = false;
}

}  // namespace sgdph
