#pragma once

// The order of hooks. In LibTorch 1.x those of a leaf run after those of its node, and those of any other tensor are
// its node's. In 2.x all hooks of tensors run before those of nodes, a leaf's also when `autograd::grad` is asked for
// it.

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace sgdph::detail {

using PreHook = torch::autograd::FunctionPreHook;
using PreHooks = std::vector<std::unique_ptr<PreHook>>;
using LeafHooks = std::decay_t<decltype(torch::autograd::impl::hooks(std::declval<const at::Tensor&>()))>;
inline constexpr bool kTensorHooksRunFirst = std::is_same_v<LeafHooks, PreHooks>;

/// Those of the tensor.
inline LeafHooks& leaf_hooks(const at::Tensor& leaf) {
  return const_cast<LeafHooks&>(torch::autograd::impl::hooks(leaf));
}

/// The hooks that see first what comes to a node.
template <class Node>
PreHooks& first_hooks(Node& node) {
  if constexpr (kTensorHooksRunFirst) {
    return node.tensor_pre_hooks();
  } else {
    return node.pre_hooks();
  }
}

/// Puts a hook before all others that see what comes to a node.
template <class Node>
void add_first_hook(Node& node, std::unique_ptr<PreHook> hook) {
  auto& hooks = first_hooks(node);
  hooks.insert(hooks.begin(), std::move(hook));
}

template <class Node, class Is>
void remove_first_hooks(Node& node, const Is& is) {
  auto& hooks = first_hooks(node);
  hooks.erase(
      std::remove_if(hooks.begin(), hooks.end(), [&is](const auto& hook) { return is(hook.get()); }), hooks.end());
}

/// Keeps the hooks of these leaves from seeing what is no gradient of the loss: second derivatives, say.
class LeafHooksAside {
 public:
  explicit LeafHooksAside(const std::vector<at::Tensor>& leaves) {
    if constexpr (kTensorHooksRunFirst) {
      for (const auto& leaf : leaves) {
        if (!leaf.is_leaf() || !leaf.requires_grad() || leaf_hooks(leaf).empty()) continue;
        aside_.emplace_back(leaf, LeafHooks());
        std::swap(aside_.back().second, leaf_hooks(leaf));
      }
    }
  }
  ~LeafHooksAside() {
    for (auto& [leaf, hooks] : aside_) std::swap(hooks, leaf_hooks(leaf));
  }
  LeafHooksAside(const LeafHooksAside&) = delete;
  LeafHooksAside& operator=(const LeafHooksAside&) = delete;

 private:
  std::vector<std::pair<at::Tensor, LeafHooks>> aside_;
};

}  // namespace sgdph::detail
