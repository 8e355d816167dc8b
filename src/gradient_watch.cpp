#include "gradient_watch.h"

#include "detail/hooks.h"

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/types.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
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

  /// Called when a pass is about to add to the gradient, and when it has.
  void before() {
    if (ours || !seen) return;
    const auto& now = parameter.grad();
    if (now.defined() && ((is_same(now) && version_of(now) == version) || !is_zero(now))) return;
    forget();
    ended = true;
  }
  void after() {
    (ours ? passed_ours : passed_others) = true;
    remember();
  }
};

/// Which passes have added to the gradient of a parameter.
struct GradientWatch::Passes {
  at::Tensor parameter;
  detail::NodePtr node;
  bool under_way = false;  ///< one of the optimizer's
  bool ours = false, others = false;

  /// Called when a pass is about to add to the gradient.
  void before() {
    auto& there = under_way ? others : ours;
    // Of what was cleared since, nothing counts.
    if (there && !is_left()) there = false;
    (under_way ? ours : others) = true;
  }
  bool is_left() const { return parameter.grad().defined() && !is_zero(parameter.grad()); }
};

/// Tells what is watched of a pass about to add to the gradient. It may stay when nothing is watched any more: the
/// engine may be looking through the hooks of its node just then.
template <class Watched>
class GradientWatch::Before final : public detail::PreHook {
 public:
  Before(const GradientWatch* owner, std::weak_ptr<Watched> watched) : owner_(owner), watched_(std::move(watched)) {}
  variable_list operator()(const variable_list& gradients) override {
    const auto watched = watched_.lock();
    if (watched && !gradients.empty() && gradients[0].defined()) watched->before();
    return gradients;
  }
  bool belongs_to(const GradientWatch* owner) const { return owner_ == owner; }
  void turn_to(std::weak_ptr<Watched> watched) { watched_ = std::move(watched); }

 private:
  const GradientWatch* owner_;
  std::weak_ptr<Watched> watched_;
};

class GradientWatch::After final : public torch::autograd::FunctionPostHook {
 public:
  explicit After(std::weak_ptr<State> state) : state_(std::move(state)) {}
  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    const auto state = state_.lock();
    if (state && !inputs.empty() && inputs[0].defined()) state->after();
    return outputs;
  }

 private:
  std::weak_ptr<State> state_;
};

GradientWatch::~GradientWatch() {
  if (state_) take_hooks_off(*state_->node);
  stop();
  for (const auto& one : passes_) take_hooks_off(*one->node);
}

template <class Watched>
void GradientWatch::watch_before(torch::autograd::Node& node, const std::shared_ptr<Watched>& watched) const {
  for (const auto& hook : node.pre_hooks()) {
    auto* ours = dynamic_cast<Before<Watched>*>(hook.get());
    if (ours == nullptr || !ours->belongs_to(this)) continue;
    ours->turn_to(watched);
    return;
  }
  node.add_pre_hook(std::make_unique<Before<Watched>>(this, watched));
}

void GradientWatch::take_hooks_off(torch::autograd::Node& node) const {
  detail::remove_hooks(node, [this](detail::PreHook* hook) {
    auto* of_state = dynamic_cast<Before<State>*>(hook);
    auto* of_passes = dynamic_cast<Before<Passes>*>(hook);
    return (of_state != nullptr && of_state->belongs_to(this)) || (of_passes != nullptr && of_passes->belongs_to(this));
  });
}

void GradientWatch::see_passes(const std::vector<at::Tensor>& parameters) {
  std::vector<std::pair<at::Tensor, detail::NodePtr>> wanted;
  for (const auto& parameter : parameters) {
    if (parameter.is_leaf()) wanted.emplace_back(parameter, torch::autograd::impl::gradient_edge(parameter).function);
  }
  const auto is_seen = [](const auto& one, const auto& passes) { return one.second == passes->node; };
  if (std::equal(wanted.begin(), wanted.end(), passes_.begin(), passes_.end(), is_seen)) return;
  std::unordered_map<const torch::autograd::Node*, std::shared_ptr<Passes>> known;
  for (const auto& one : passes_) known.emplace(one->node.get(), one);
  passes_.clear();
  for (auto& [parameter, node] : wanted) {
    auto& passes = known[node.get()];
    if (!passes) {
      passes = std::make_shared<Passes>();
      passes->parameter = parameter;
      passes->node = node;
      watch_before(*node, passes);
    }
    passes_.push_back(passes);
  }
}

template <class Which>
bool GradientWatch::any_pass(const Which& which) const {
  return std::any_of(passes_.begin(), passes_.end(), [&which](const auto& one) { return which(*one); });
}

bool GradientWatch::others_left() const {
  return any_pass([](const Passes& one) { return one.others && one.is_left(); });
}

bool GradientWatch::ours_left() const {
  return any_pass([](const Passes& one) { return one.ours && one.is_left(); });
}

bool GradientWatch::both_left() const {
  const bool both = any_pass([](const Passes& one) { return one.ours; }) &&
                    any_pass([](const Passes& one) { return one.others; });  // as a rule no values are looked at
  return both && ours_left() && others_left();
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
  state_->hook = node->add_post_hook(std::make_unique<After>(state_));
  watch_before(*node, state_);
  state_->remember();
}

void GradientWatch::forget() {
  if (state_) state_->forget();
  passes_.clear();
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

GradientWatch::Ours::Ours(GradientWatch& watch) : state_(watch.state_), passes_(watch.passes_) {
  set(true);
}

GradientWatch::Ours::~Ours() {
  set(false);
}

void GradientWatch::Ours::set(bool under_way) const {
  if (state_) state_->ours = under_way;
  for (const auto& one : passes_) one->under_way = under_way;
}

}  // namespace sgdph
