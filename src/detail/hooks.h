#pragma once

// Hooks and their order. In LibTorch 1.x those of a leaf run after those of its node, and those of any other tensor are
// its node's. In 2.x all hooks of tensors run before those of nodes, a leaf's also when `autograd::grad` is asked for
// it.

#include "compat.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

namespace sgdph::detail {

using PreHook = torch::autograd::FunctionPreHook;
using PreHooks = std::vector<std::unique_ptr<PreHook>>;
using PostHooks = std::vector<std::unique_ptr<torch::autograd::FunctionPostHook>>;
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

/// Puts a hook before the others that see what comes when the node itself is run.
template <class Node>
void add_hook_of_run(Node& node, std::unique_ptr<PreHook> hook) {
  node.pre_hooks().insert(node.pre_hooks().begin(), std::move(hook));
}

template <class Node, class Is>
void remove_hooks(Node& node, const Is& is) {
  const auto remove_from = [&is](PreHooks& hooks) {
    hooks.erase(
        std::remove_if(hooks.begin(), hooks.end(), [&is](const auto& hook) { return is(hook.get()); }), hooks.end());
  };
  remove_from(node.pre_hooks());
  if constexpr (kTensorHooksRunFirst) remove_from(first_hooks(node));
}

/// A hook of a tensor that looks on and changes nothing.
class Onlooker : public PreHook {
 public:
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) final {
    if (!gradients.empty() && gradients[0].defined()) see();
    return gradients;
  }

 private:
  virtual void see() = 0;
};

/// Whether a hook of the leaf may change what comes.
inline bool has_changing_hooks(const at::Tensor& leaf) {
  const auto& hooks = leaf_hooks(leaf);
  return std::any_of(hooks.begin(), hooks.end(), [](const auto& hook) {
    return dynamic_cast<const Onlooker*>(hook.get()) == nullptr;
  });
}

/// Of a hook of this leaf: whether the pass under way adds to its gradient; it may be asked for the gradient alone.
bool is_added_to(const at::Tensor& leaf);

/// Of a hook: does this when the pass under way is over, be it by an error.
void at_end_of_pass(std::function<void()> action);

/// Keeps the hooks of these leaves from seeing what is no gradient of the loss: second derivatives, say.
class LeafHooksAside {
 public:
  explicit LeafHooksAside(const std::vector<at::Tensor>& leaves);
  ~LeafHooksAside();
  LeafHooksAside(const LeafHooksAside&) = delete;
  LeafHooksAside& operator=(const LeafHooksAside&) = delete;

 private:
  std::vector<std::pair<at::Tensor, LeafHooks>> aside_;
};

/// The nodes of the graphs of some tensors, each once; they live as long as the list.
std::vector<NodePtr> graph_of(const std::vector<at::Tensor>& tensors);

/// Between a pass and what `retain_grad` keeps of it, while this lives: gradients come there without their graph, or
/// not at all.
class RetainedGradients {
 public:
  enum class Keeps { Plain, Nothing };
  RetainedGradients(const std::vector<NodePtr>& nodes, Keeps keeps);
  ~RetainedGradients();
  RetainedGradients(const RetainedGradients&) = delete;
  RetainedGradients& operator=(const RetainedGradients&) = delete;

 private:
  std::vector<std::function<void()>> undo_;
};

/// What hooks on activations are given has its graph, so that what they make of it can be differentiated. One that
/// keeps a gradient would keep the graph alive that ends in it, and so itself: when this dies, gradients that are still
/// there lose their graph.
class KeptGradients {
 public:
  KeptGradients() = default;
  ~KeptGradients();
  KeptGradients(const KeptGradients&) = delete;
  KeptGradients& operator=(const KeptGradients&) = delete;

  /// The same gradients, remembered; copies of those whose graph could not be taken off, or is somebody else's.
  torch::autograd::variable_list see(const torch::autograd::variable_list& gradients);

 private:
  std::mutex mutex_;  // nodes of several devices have a thread each
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> gradients_;
};

/// Remembers, while this lives, what hooks of these nodes are given.
class SeeGradientsGiven {
 public:
  SeeGradientsGiven(const std::vector<NodePtr>& nodes, const std::shared_ptr<KeptGradients>& kept);
  ~SeeGradientsGiven();
  SeeGradientsGiven(const SeeGradientsGiven&) = delete;
  SeeGradientsGiven& operator=(const SeeGradientsGiven&) = delete;

 private:
  class Before;
  class After;
  std::vector<NodePtr> nodes_;
};

/// Keeps all hooks of these nodes, and so of the tensors they made, from seeing what is no gradient of the loss.
class NodeHooksAside {
 public:
  explicit NodeHooksAside(std::vector<NodePtr> nodes);
  ~NodeHooksAside();
  NodeHooksAside(const NodeHooksAside&) = delete;
  NodeHooksAside& operator=(const NodeHooksAside&) = delete;

 private:
  std::vector<NodePtr> nodes_;
  RetainedGradients retained_;
  std::vector<std::pair<PreHooks*, PreHooks>> pre_;
  std::vector<std::pair<PostHooks*, PostHooks>> post_;
};

}  // namespace sgdph::detail
