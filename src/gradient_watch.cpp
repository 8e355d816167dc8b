#include "gradient_watch.h"

#include "detail/hooks.h"

#include <c10/util/intrusive_ptr.h>
#include <torch/types.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace sgdph {
namespace {

using WeakTensor = c10::weak_intrusive_ptr<at::TensorImpl, c10::UndefinedTensorImpl>;

uint32_t version_of(const at::Tensor& gradient) {
  return gradient.is_inference() ? 0 : gradient._version();
}

}  // namespace

struct GradientWatch::Leaf {
  explicit Leaf(at::Tensor of) : parameter(std::move(of)) {}

  at::Tensor parameter;
  // Since the beginning.
  bool ours = false, others = false;   ///< such passes have added to the gradient
  bool held = false;                   ///< no pass has, but something belongs to it
  std::optional<WeakTensor> gradient;  ///< as it was then; weak, since memory that was let go is to be free
  uint32_t version = 0;

  bool is_reached() const { return ours || others || held; }
  bool is_unchanged() const {
    const auto& now = parameter.grad();
    return gradient && now.defined() && gradient->_unsafe_get_target() == now.unsafeGetTensorImpl() &&
           version_of(now) == version;
  }
  bool is_left() const {
    const auto& now = parameter.grad();
    return now.defined() && (now.is_sparse() || now.detach().ne(0).any().item<bool>());
  }
  void remember() {
    gradient.reset();
    if (!is_reached() || !parameter.grad().defined()) return;
    gradient.emplace(parameter.grad().getIntrusivePtr());
    version = version_of(parameter.grad());
  }
};

struct GradientWatch::State {
  enum Pass { kNone, kOurs, kOthers, kForgotten };

  std::mutex mutex;  // leaves of several devices are reached by a thread each
  std::vector<std::shared_ptr<Leaf>> leaves;
  Pass pass = kNone;   ///< what is under way
  bool ended = false;  ///< gradients were cleared, and a pass has come since

  void forget() {
    for (const auto& leaf : leaves) {
      leaf->ours = leaf->others = leaf->held = false;
      leaf->gradient.reset();
    }
    ended = false;
  }
  void remember() {
    for (const auto& leaf : leaves) leaf->remember();
  }
  void hold() {
    const auto is_reached = [](const auto& leaf) { return leaf->ours || leaf->others; };
    if (std::any_of(leaves.begin(), leaves.end(), is_reached)) return;
    for (const auto& leaf : leaves) leaf->held = leaf->parameter.grad().defined();
    remember();
  }
  void let_go() {
    for (const auto& leaf : leaves) leaf->held = false;
  }
  /// Whether all is gone that passes have added to; then it is forgotten. As a rule no values are looked at.
  bool look() {
    std::vector<const Leaf*> reached;
    for (const auto& leaf : leaves) {
      if (!leaf->is_reached()) continue;
      if (leaf->is_unchanged()) return false;
      reached.push_back(leaf.get());
    }
    if (reached.empty()) return false;
    // Scaled or clipped: looked at once.
    if (std::any_of(reached.begin(), reached.end(), [](const Leaf* leaf) { return leaf->is_left(); })) {
      remember();
      return false;
    }
    forget();
    return true;
  }
};

/// Told of a gradient about to be added.
class GradientWatch::Hook final : public detail::Onlooker {
 public:
  Hook(const std::shared_ptr<State>& state, const std::shared_ptr<Leaf>& leaf) : state_(state), leaf_(leaf) {}
  bool is_of(const std::shared_ptr<Leaf>& leaf) const { return leaf_.lock() == leaf; }

 private:
  void see() override {
    const auto state = state_.lock();
    const auto leaf = leaf_.lock();
    if (!state || !leaf || !detail::is_added_to(leaf->parameter)) return;
    const std::lock_guard<std::mutex> lock(state->mutex);
    if (state->pass == State::kNone) {
      state->ended = state->look() || state->ended;
      state->let_go();
      state->pass = State::kOthers;
      detail::at_end_of_pass([of = state_] {
        const auto ended = of.lock();
        if (!ended) return;
        const std::lock_guard<std::mutex> end_lock(ended->mutex);
        ended->pass = State::kNone;
        ended->remember();
      });
    }
    if (state->pass == State::kForgotten) return;
    const bool ours = state->pass == State::kOurs;
    // Of what was cleared since, nothing counts.
    auto& there = ours ? leaf->others : leaf->ours;
    if (there && !leaf->is_left()) there = false;
    (ours ? leaf->ours : leaf->others) = true;
  }

  std::weak_ptr<State> state_;
  std::weak_ptr<Leaf> leaf_;
};

GradientWatch::GradientWatch() : state_(std::make_shared<State>()) {}

GradientWatch::~GradientWatch() {
  watch({});
}

void GradientWatch::watch(std::vector<at::Tensor> parameters) {
  const auto is_no_leaf = [](const at::Tensor& parameter) { return !parameter.is_leaf(); };
  parameters.erase(std::remove_if(parameters.begin(), parameters.end(), is_no_leaf), parameters.end());
  auto& leaves = state_->leaves;
  const auto is_hook_of = [](const detail::PreHook* hook, const std::shared_ptr<Leaf>& leaf) {
    const auto* ours = dynamic_cast<const Hook*>(hook);
    return ours != nullptr && ours->is_of(leaf);
  };
  const auto is_of = [](const at::Tensor& parameter, const auto& leaf) { return leaf->parameter.is_same(parameter); };
  if (!std::equal(parameters.begin(), parameters.end(), leaves.begin(), leaves.end(), is_of)) {
    std::unordered_map<const at::TensorImpl*, std::shared_ptr<Leaf>> known;
    for (const auto& leaf : leaves) known.emplace(leaf->parameter.unsafeGetTensorImpl(), leaf);
    leaves.clear();
    for (const auto& parameter : parameters) {
      const auto found = known.find(parameter.unsafeGetTensorImpl());
      leaves.push_back(found == known.end() ? std::make_shared<Leaf>(parameter) : std::move(found->second));
      if (found != known.end()) known.erase(found);
    }
    for (const auto& [address, leaf] : known) {
      auto& hooks = detail::leaf_hooks(leaf->parameter);
      const auto is_its = [&, of = leaf](const auto& hook) { return is_hook_of(hook.get(), of); };
      hooks.erase(std::remove_if(hooks.begin(), hooks.end(), is_its), hooks.end());
    }
  }
  for (const auto& leaf : leaves) {
    auto& hooks = detail::leaf_hooks(leaf->parameter);
    const auto is_its = [&](const auto& hook) { return is_hook_of(hook.get(), leaf); };
    if (std::none_of(hooks.begin(), hooks.end(), is_its)) {
      hooks.insert(hooks.begin(), std::make_unique<Hook>(state_, leaf));
    }
  }
}

void GradientWatch::forget() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->forget();
  if (state_->pass != State::kNone) state_->pass = State::kForgotten;
}

void GradientWatch::hold() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->hold();
}

bool GradientWatch::cleared() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const bool before = std::exchange(state_->ended, false);
  return state_->look() || before;
}

template <class Which>
bool GradientWatch::any(const Which& which) const {
  return std::any_of(state_->leaves.begin(), state_->leaves.end(), [&which](const auto& leaf) { return which(*leaf); });
}

bool GradientWatch::ours_left() const {
  return any([](const Leaf& leaf) { return leaf.ours && leaf.is_left(); });
}

bool GradientWatch::others_left() const {
  return any([](const Leaf& leaf) { return leaf.others && leaf.is_left(); });
}

bool GradientWatch::both_left() const {
  const bool both = any([](const Leaf& leaf) { return leaf.ours; }) &&
                    any([](const Leaf& leaf) { return leaf.others; });  // as a rule no values are looked at
  return both && ours_left() && others_left();
}

GradientWatch::Ours::Ours(GradientWatch& watch) : state_(watch.state_) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->let_go();
  before_ = std::exchange(state_->pass, State::kOurs);
}

GradientWatch::Ours::~Ours() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->pass = static_cast<State::Pass>(before_);
  state_->remember();
}

}  // namespace sgdph
