#include "product_plan.h"

#include "detail/hooks.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/variable.h>

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

namespace sgdph {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

/// Whether the node runs somebody else's code, of which it is not known that it can be differentiated.
bool is_foreign(const Node& node) {
  return node.num_outputs() != 0 && !detail::is_operator(node) && node.name().rfind("sgdph::", 0) != 0;
}

/// Whether second derivatives go through what made the gradient. One that may be differentiated once only (Python's
/// once_differentiable) hands on a graph that ends in an error, which a product on the way to a block passes by.
bool keeps_graph(const at::Tensor& gradient) {
  return gradient.requires_grad() && dynamic_cast<torch::autograd::Error*>(gradient.grad_fn().get()) == nullptr;
}

/// The same gradients, all of which have a graph, be it one that leads nowhere: so it is seen whether a node keeps it.
variable_list with_graph(const variable_list& gradients) {
  variable_list result;
  for (const auto& gradient : gradients) {
    const bool lacks = gradient.defined() && !gradient.requires_grad();
    // A copy, since the node may change it in place.
    result.push_back(lacks ? gradient.detach().requires_grad_(true).clone() : gradient);
  }
  return result;
}

}  // namespace

struct ProductPlan::Shared {
  bool frees = false;
  /// Freeing is for nodes this thread runs, one after the other; those of other devices have threads of their own.
  std::thread::id thread = std::this_thread::get_id();
  /// A node that has run and whose buffers nobody needs.
  Node* done = nullptr;
  std::mutex mutex;
  /// Nodes that were given a gradient without the graph it should have.
  std::vector<Node*> lost;

  void free_done() {
    if (done != nullptr) done->release_variables();
    done = nullptr;
  }
  /// Called before a node runs.
  void follow(Node* node, bool on_the_way) {
    // A leaf may also run within another node (a checkpointed part of the network) and has nothing to free.
    if (!frees || std::this_thread::get_id() != thread || node->num_outputs() == 0) return;
    free_done();
    if (!on_the_way) done = node;
  }
};

/// Sets grad mode for the node it is about to run. Gradients of nodes off the way go to such nodes only, so the mode
/// also fits the sums autograd forms between nodes.
class ProductPlan::Hook : public torch::autograd::FunctionPreHook {
 public:
  Hook(std::shared_ptr<Shared> shared, Node* node, bool on_the_way, bool is_checked)
      : shared_(std::move(shared)),
        node_(node),
        // A leaf computes nothing: recording would only make it copy what it is given.
        on_the_way_(on_the_way && node->num_outputs() != 0),
        is_checked_(is_checked) {}

  variable_list operator()(const variable_list& gradients) override {
    shared_->follow(node_, on_the_way_);
    at::GradMode::set_enabled(on_the_way_);
    return is_checked_ ? with_graph(gradients) : gradients;
  }
  bool belongs_to(const Shared* shared) const { return shared_.get() == shared; }

 private:
  std::shared_ptr<Shared> shared_;
  Node* node_;
  bool on_the_way_, is_checked_;
};

/// Sees whether a foreign node hands on gradients with their graph, where blocks lie behind.
class ProductPlan::Check : public torch::autograd::FunctionPostHook {
 public:
  Check(std::shared_ptr<Shared> shared, Node* node, std::vector<bool> leads_to_block)
      : shared_(std::move(shared)), node_(node), leads_to_block_(std::move(leads_to_block)) {}

  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    for (size_t i = 0; i < outputs.size() && i < leads_to_block_.size(); ++i) {
      if (!leads_to_block_[i] || !outputs[i].defined() || keeps_graph(outputs[i])) continue;
      const std::lock_guard<std::mutex> lock(shared_->mutex);
      shared_->lost.push_back(node_->next_edge(i).function.get());
    }
    return outputs;
  }

 private:
  std::shared_ptr<Shared> shared_;
  Node* node_;
  std::vector<bool> leads_to_block_;
};

ProductPlan::ProductPlan(const at::Tensor& loss, const std::vector<at::Tensor>& blocks, bool graph_is_ours)
    : shared_(std::make_shared<Shared>()) {
  shared_->frees = graph_is_ours;
  std::unordered_map<Node*, std::vector<Node*>> callers;
  nodes_.push_back(torch::autograd::impl::gradient_edge(loss).function);  // a leaf's, if the loss is a parameter itself
  callers[nodes_.front().get()];
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const auto& edge : nodes_[i]->next_edges()) {
      if (!edge.is_valid()) continue;
      auto [entry, unseen] = callers.try_emplace(edge.function.get());
      entry->second.push_back(nodes_[i].get());
      // `nodes_` may move; the reference into it is not used after this.
      if (unseen) nodes_.push_back(edge.function);
    }
  }

  std::unordered_set<Node*> on_the_way;
  std::vector<Node*> open;
  for (const auto& block : blocks) {
    auto* node = torch::autograd::impl::gradient_edge(block).function.get();
    if (callers.count(node) != 0 && on_the_way.insert(node).second) open.push_back(node);
  }
  while (!open.empty()) {
    auto* node = open.back();
    open.pop_back();
    for (auto* caller : callers[node]) {
      if (on_the_way.insert(caller).second) open.push_back(caller);
    }
  }

  for (const auto& node : nodes_) {
    if (auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node.get())) leaves_.push_back(leaf);
    const bool here = on_the_way.count(node.get()) != 0;
    const bool is_checked = here && is_foreign(*node);
    // Before the user's, which are part of what is differentiated.
    detail::add_first_hook(*node, std::make_unique<Hook>(shared_, node.get(), here, is_checked));
    auto* plannable = here ? dynamic_cast<Plannable*>(node.get()) : nullptr;
    if (plannable == nullptr && !is_checked) continue;
    std::vector<bool> leads_to_block;
    for (const auto& edge : node->next_edges()) leads_to_block.push_back(on_the_way.count(edge.function.get()) != 0);
    if (plannable != nullptr) plannable->plan(leads_to_block, graph_is_ours);
    if (!is_checked) continue;
    auto check = std::make_unique<Check>(shared_, node.get(), std::move(leads_to_block));
    checks_.emplace_back(node.get(), node->add_post_hook(std::move(check)));
  }
}

std::vector<char> ProductPlan::lost(const std::vector<at::Tensor>& blocks) const {
  std::unordered_set<Node*> behind;
  auto open = shared_->lost;
  while (!open.empty()) {
    auto* node = open.back();
    open.pop_back();
    if (node == nullptr || !behind.insert(node).second) continue;
    for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
  }
  std::vector<char> lost;
  for (const auto& block : blocks) {
    const bool is_lost =
        !behind.empty() && behind.count(torch::autograd::impl::gradient_edge(block).function.get()) != 0;
    lost.push_back(is_lost ? 1 : 0);
  }
  return lost;
}

ProductPlan::~ProductPlan() {
  shared_->free_done();
  for (const auto& [node, check] : checks_) node->del_post_hook(check);
  for (const auto& node : nodes_) {
    detail::remove_hooks(*node, [this](const detail::PreHook* hook) {
      const auto* ours = dynamic_cast<const Hook*>(hook);
      return ours != nullptr && ours->belongs_to(shared_.get());
    });
    if (auto* plannable = dynamic_cast<Plannable*>(node.get())) plannable->forget_plan();
  }
}

}  // namespace sgdph
