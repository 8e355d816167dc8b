#include "hooks.h"

#include <torch/csrc/autograd/cpp_hook.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/types.h>

#include <cstring>
#include <typeinfo>
#include <unordered_set>

namespace torch::autograd {
struct CppFunctionPreHook;  // of 1.x
}

namespace sgdph::detail {
namespace {

using torch::autograd::variable_list;

/// Hooks that were set aside come back before those that were added meanwhile.
template <class Hooks>
void put_back(Hooks& place, Hooks& aside) {
  std::swap(place, aside);
  for (auto& added : aside) place.push_back(std::move(added));
}

/// Sets a list of hooks aside, unless it is empty.
template <class Hooks>
void set_aside(std::vector<std::pair<Hooks*, Hooks>>& aside, Hooks& hooks) {
  if (hooks.empty()) return;
  aside.emplace_back(&hooks, Hooks());
  std::swap(aside.back().second, hooks);
}

/// Whether this one of 1.x holds the functions that a tensor was given; its class is not exported, and so known by
/// name.
bool is_of_functions(const PreHook& hook) {
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

using Keeps = RetainedGradients::Keeps;
using Undo = std::vector<std::function<void()>>;

/// Stands in the place of a hook that keeps gradients, in 2.x.
class Between final : public PreHook {
 public:
  Between(std::unique_ptr<PreHook> hook, Keeps keeps) : hook_(std::move(hook)), keeps_(keeps) {}
  variable_list operator()(const variable_list& gradients) override {
    if (keeps_ == Keeps::Nothing) return gradients;
    variable_list plain;
    for (const auto& gradient : gradients) plain.push_back(gradient.defined() ? gradient.detach() : gradient);
    (*hook_)(plain);
    return gradients;
  }
  std::unique_ptr<PreHook> take() { return std::move(hook_); }

 private:
  std::unique_ptr<PreHook> hook_;
  Keeps keeps_;
};

/// The same of 1.x, among the functions of a tensor.
template <class Hook>
void come_between(PreHook& hook, Keeps keeps, Undo& undo) {
  if (!is_of_functions(hook)) return;
  const auto& list = static_cast<Hook&>(hook).hooks_;
  for (size_t i = 0; i < list->size(); ++i) {
    auto& place = (*list)[i];
    if (place.target_type() != retaining_type<Hook>()) continue;
    undo.emplace_back([list, i, function = place] { (*list)[i] = function; });
    if (keeps == Keeps::Nothing) {
      place = nullptr;
    } else {
      place = [keep = std::move(place)](const at::TensorBase& gradient) {
        return keep(gradient.defined() ? at::Tensor(gradient).detach() : gradient);
      };
    }
  }
}

template <class Node>
void come_between_node(Node& node, Keeps keeps, Undo& undo) {
  if constexpr (kTensorHooksRunFirst) {
    for (auto& entry : node.retains_grad_hooks()) {
      auto* place = &entry.second;
      *place = std::make_unique<Between>(std::move(*place), keeps);
      undo.emplace_back([place] { *place = static_cast<Between&>(**place).take(); });
    }
  } else {
    for (const auto& hook : node.pre_hooks()) come_between<torch::autograd::CppFunctionPreHook>(*hook, keeps, undo);
  }
}

template <class Leaf>
void put_back_leaf_hooks([[maybe_unused]] const Leaf& leaf, [[maybe_unused]] LeafHooks& hooks) {
  if constexpr (kTensorHooksRunFirst) put_back(leaf_hooks(leaf), hooks);
}

}  // namespace

bool is_added_to(const at::Tensor& leaf) {
  const auto* asked = torch::autograd::get_current_graph_task_exec_info();
  if (asked == nullptr) return false;
  if (asked->empty()) return true;
  const auto found = asked->find(torch::autograd::impl::try_get_grad_accumulator(leaf).get());
  return found != asked->end() && found->second.needed_;
}

void at_end_of_pass(std::function<void()> action) {
  struct End {
    std::function<void()> action;
    ~End() { once(); }
    void once() {
      if (const auto now = std::exchange(action, nullptr)) now();
    }
  };
  const auto end = std::make_shared<End>();
  end->action = std::move(action);
  torch::autograd::Engine::get_default_engine().queue_callback([end] { end->once(); });
}

LeafHooksAside::LeafHooksAside(const std::vector<at::Tensor>& leaves) {
  if (!kTensorHooksRunFirst) return;
  for (const auto& leaf : leaves) {
    if (!leaf.is_leaf() || !leaf.requires_grad() || leaf_hooks(leaf).empty()) continue;
    aside_.emplace_back(leaf, LeafHooks());
    std::swap(aside_.back().second, leaf_hooks(leaf));
  }
}

LeafHooksAside::~LeafHooksAside() {
  for (auto& [leaf, hooks] : aside_) put_back_leaf_hooks(leaf, hooks);
}

std::vector<NodePtr> graph_of(const std::vector<at::Tensor>& tensors) {
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

RetainedGradients::RetainedGradients(const std::vector<NodePtr>& nodes, Keeps keeps) {
  for (const auto& node : nodes) come_between_node(*node, keeps, undo_);
}

RetainedGradients::~RetainedGradients() {
  for (const auto& undo : undo_) undo();
}

variable_list KeptGradients::see(const variable_list& gradients) {
  auto seen = gradients;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& gradient : seen) {
    if (!gradient.defined() || !gradient.requires_grad()) continue;
    if (gradient.is_view() || gradient.is_leaf()) gradient = gradient.clone();
    gradients_.emplace_back(gradient.getIntrusivePtr());
  }
  return seen;
}

KeptGradients::~KeptGradients() {
  for (const auto& one : gradients_) {
    try {
      const at::Tensor kept(one.lock());
      if (kept.defined() && kept.requires_grad() && !kept.is_leaf() && !kept.is_view()) kept.detach_();
    } catch (...) {
      // It keeps its graph, which costs memory and changes no value.
    }
  }
}

class SeeGradientsGiven::Before final : public PreHook {
 public:
  explicit Before(std::shared_ptr<KeptGradients> kept) : kept_(std::move(kept)) {}
  variable_list operator()(const variable_list& gradients) override { return kept_->see(gradients); }

 private:
  std::shared_ptr<KeptGradients> kept_;
};

class SeeGradientsGiven::After final : public torch::autograd::FunctionPostHook {
 public:
  explicit After(std::shared_ptr<KeptGradients> kept) : kept_(std::move(kept)) {}
  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    return kept_->see(outputs);
  }

 private:
  std::shared_ptr<KeptGradients> kept_;
};

SeeGradientsGiven::SeeGradientsGiven(const std::vector<NodePtr>& nodes, const std::shared_ptr<KeptGradients>& kept) {
  for (const auto& node : nodes) {
    // A leaf's gradient comes without its graph.
    if (node->num_outputs() == 0) continue;
    if (first_hooks(*node).empty() && node->pre_hooks().empty() && node->post_hooks().empty()) continue;
    add_first_hook(*node, std::make_unique<Before>(kept));
    if (!node->post_hooks().empty()) {
      node->post_hooks().insert(node->post_hooks().begin(), std::make_unique<After>(kept));
    }
    nodes_.push_back(node);
  }
}

SeeGradientsGiven::~SeeGradientsGiven() {
  for (const auto& node : nodes_) {
    remove_hooks(*node, [](const PreHook* hook) { return dynamic_cast<const Before*>(hook) != nullptr; });
    auto& after = node->post_hooks();
    const auto is_ours = [](const auto& hook) { return dynamic_cast<const After*>(hook.get()) != nullptr; };
    after.erase(std::remove_if(after.begin(), after.end(), is_ours), after.end());
  }
}

NodeHooksAside::NodeHooksAside(std::vector<NodePtr> nodes)
    : nodes_(std::move(nodes)), retained_(nodes_, RetainedGradients::Keeps::Nothing) {
  for (const auto& node : nodes_) {
    set_aside(pre_, node->pre_hooks());
    set_aside(post_, node->post_hooks());
    if constexpr (kTensorHooksRunFirst) set_aside(pre_, first_hooks(*node));
  }
}

NodeHooksAside::~NodeHooksAside() {
  for (auto& [place, hooks] : pre_) put_back(*place, hooks);
  for (auto& [place, hooks] : post_) put_back(*place, hooks);
}

}  // namespace sgdph::detail
