#pragma once

// Hooks and their order. In LibTorch 1.x those of a leaf run after those of its node, and those of any other tensor are
// its node's. In 2.x all hooks of tensors run before those of nodes, a leaf's also when `autograd::grad` is asked for
// it.

#include "compat.h"

#include <torch/csrc/autograd/cpp_hook.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/types.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <typeinfo>
#include <unordered_set>
#include <utility>
#include <vector>

namespace torch::autograd {
struct CppFunctionPreHook;  // of 1.x
}

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

/// Hooks that were set aside come back before those that were added meanwhile.
template <class Hooks>
void put_back(Hooks& place, Hooks& aside) {
  std::swap(place, aside);
  for (auto& added : aside) place.push_back(std::move(added));
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
    if constexpr (kTensorHooksRunFirst) {
      for (auto& [leaf, hooks] : aside_) put_back(leaf_hooks(leaf), hooks);
    }
  }
  LeafHooksAside(const LeafHooksAside&) = delete;
  LeafHooksAside& operator=(const LeafHooksAside&) = delete;

 private:
  std::vector<std::pair<at::Tensor, LeafHooks>> aside_;
};

/// Whether this one of 1.x holds the functions that a tensor was given; its class is not exported, and so known by
/// name.
inline bool is_of_functions(const PreHook& hook) {
  return std::strstr(typeid(hook).name(), "CppFunctionPreHook") != nullptr;
}

/// The type of the function that `retain_grad` of 1.x adds to those of a tensor, which has no name: read off a sample.
template <class Hook>
const std::type_info& retaining_type() {
  static const std::type_info& type = []() -> const std::type_info& {
    const at::AutoGradMode recording(true);
    const auto sample = at::ones({1}).requires_grad_(true) * 1;
    sample.retain_grad();
    for (const auto& hook : sample.grad_fn()->pre_hooks()) {
      if (is_of_functions(*hook)) return static_cast<Hook&>(*hook).hooks_->back().target_type();
    }
    return typeid(void);
  }();
  return type;
}

/// The nodes of the graphs of some tensors, each once; they live as long as the list.
inline std::vector<NodePtr> graph_of(const std::vector<at::Tensor>& tensors) {
  std::vector<NodePtr> nodes;
  std::unordered_set<const torch::autograd::Node*> seen;
  const auto add = [&](const NodePtr& node) {
    if (node && seen.insert(node.get()).second) nodes.push_back(node);
  };
  for (const auto& tensor : tensors) {
    if (tensor.defined() && tensor.requires_grad()) add(torch::autograd::impl::gradient_edge(tensor).function);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto& edges = nodes[i]->next_edges();  // the node's own: `nodes` may move
    for (const auto& edge : edges) add(edge.function);
  }
  return nodes;
}

/// Between a pass and what `retain_grad` keeps of it, while this lives: gradients come there without their graph, or
/// not at all.
class RetainedGradients {
 public:
  enum class Keeps { Plain, Nothing };
  RetainedGradients(const std::vector<NodePtr>& nodes, Keeps keeps) : keeps_(keeps) {
    for (const auto& node : nodes) come_between(*node);
  }
  ~RetainedGradients() {
    for (auto& [place, hook] : hooks_) *place = std::move(hook);
    for (auto& [list, i, function] : functions_) (*list)[i] = std::move(function);
  }
  RetainedGradients(const RetainedGradients&) = delete;
  RetainedGradients& operator=(const RetainedGradients&) = delete;

 private:
  using Functions = torch::autograd::hooks_list;
  struct Function {
    std::shared_ptr<Functions> list;
    size_t i;
    Functions::value_type function;
  };
  class Between final : public PreHook {
   public:
    Between(PreHook& hook, Keeps keeps) : hook_(hook), keeps_(keeps) {}
    torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
      if (keeps_ == Keeps::Nothing) return gradients;
      torch::autograd::variable_list plain;
      for (const auto& gradient : gradients) plain.push_back(gradient.defined() ? gradient.detach() : gradient);
      hook_(plain);
      return gradients;
    }

   private:
    PreHook& hook_;
    Keeps keeps_;
  };

  template <class Node>
  void come_between(Node& node) {
    if constexpr (kTensorHooksRunFirst) {
      for (auto& entry : node.retains_grad_hooks()) {
        auto& place = entry.second;
        hooks_.emplace_back(&place, std::move(place));
        place = std::make_unique<Between>(*hooks_.back().second, keeps_);
      }
    } else {
      for (const auto& hook : node.pre_hooks()) come_between<torch::autograd::CppFunctionPreHook>(*hook);
    }
  }
  template <class Hook>
  void come_between(PreHook& hook) {
    if (!is_of_functions(hook)) return;
    const auto& list = static_cast<Hook&>(hook).hooks_;
    for (size_t i = 0; i < list->size(); ++i) {
      auto& place = (*list)[i];
      if (place.target_type() != retaining_type<Hook>()) continue;
      functions_.push_back({list, i, place});
      if (keeps_ == Keeps::Nothing) {
        place = nullptr;
      } else {
        place = [keep = std::move(place)](const at::TensorBase& gradient) {
          return keep(gradient.defined() ? at::Tensor(gradient).detach() : gradient);
        };
      }
    }
  }

  Keeps keeps_;
  std::vector<std::pair<std::unique_ptr<PreHook>*, std::unique_ptr<PreHook>>> hooks_;
  std::vector<Function> functions_;
};

/// What hooks on activations were given, with its graph: one that keeps a gradient would keep the graph alive that ends
/// in it, and so itself. Seen while this lives, and taken off by `take_off` when all products are done.
class GradientsGiven {
 public:
  using Gradients = std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>>;
  explicit GradientsGiven(const std::vector<NodePtr>& nodes) {
    for (const auto& node : nodes) {
      auto& hooks = first_hooks(*node);
      const bool given =
          kTensorHooksRunFirst
              ? !hooks.empty()
              : std::any_of(hooks.begin(), hooks.end(), [](const auto& hook) { return is_of_functions(*hook); });
      if (!given) continue;
      nodes_.push_back(node);
      hooks.insert(hooks.begin(), std::make_unique<See>(*gradients_));
      hooks.push_back(std::make_unique<See>(*gradients_));
    }
  }
  ~GradientsGiven() {
    for (const auto& node : nodes_) {
      remove_hooks(*node, [](const PreHook* hook) { return dynamic_cast<const See*>(hook) != nullptr; });
    }
  }
  GradientsGiven(const GradientsGiven&) = delete;
  GradientsGiven& operator=(const GradientsGiven&) = delete;

  std::shared_ptr<Gradients> gradients() const { return gradients_; }
  static void take_off(const Gradients& gradients) {
    for (const auto& one : gradients) {
      const at::Tensor kept(one.lock());
      if (kept.defined() && kept.requires_grad()) kept.detach_();
    }
  }

 private:
  class See final : public PreHook {
   public:
    explicit See(Gradients& gradients) : gradients_(gradients) {}
    torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
      auto seen = gradients;
      for (auto& gradient : seen) {
        if (!gradient.defined() || !gradient.requires_grad()) continue;
        if (gradient.is_view()) gradient = gradient.clone();  // whose graph could not be taken off
        gradients_.emplace_back(gradient.getIntrusivePtr());
      }
      return seen;
    }

   private:
    Gradients& gradients_;
  };

  std::shared_ptr<Gradients> gradients_ = std::make_shared<Gradients>();
  std::vector<NodePtr> nodes_;
};

/// Keeps all hooks of these nodes, and so of the tensors they made, from seeing what is no gradient of the loss.
class NodeHooksAside {
 public:
  explicit NodeHooksAside(std::vector<NodePtr> nodes)
      : nodes_(std::move(nodes)), retained_(nodes_, RetainedGradients::Keeps::Nothing) {
    for (const auto& node : nodes_) {
      set_aside(pre_, node->pre_hooks());
      set_aside(post_, node->post_hooks());
      if constexpr (kTensorHooksRunFirst) set_aside(pre_, first_hooks(*node));
    }
  }
  ~NodeHooksAside() {
    for (auto& [place, hooks] : pre_) put_back(*place, hooks);
    for (auto& [place, hooks] : post_) put_back(*place, hooks);
  }
  NodeHooksAside(const NodeHooksAside&) = delete;
  NodeHooksAside& operator=(const NodeHooksAside&) = delete;

 private:
  template <class Hooks>
  static void set_aside(std::vector<std::pair<Hooks*, Hooks>>& aside, Hooks& hooks) {
    if (hooks.empty()) return;
    aside.emplace_back(&hooks, Hooks());
    std::swap(aside.back().second, hooks);
  }

  std::vector<NodePtr> nodes_;
  RetainedGradients retained_;
  std::vector<std::pair<PreHooks*, PreHooks>> pre_;
  std::vector<std::pair<PostHooks*, PostHooks>> post_;
};

}  // namespace sgdph::detail
