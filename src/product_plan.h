#pragma once

#include "detail/compat.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <utility>
#include <vector>

namespace torch::autograd {
struct AccumulateGrad;
}

namespace sgdph {

/// A node of the graph that keeps less if it knows which products will be asked of it.
class Plannable {
 public:
  virtual ~Plannable() = default;
  /// Before a backward pass with a graph, after which only products of some blocks are computed. `leads_to_block[i]`:
  /// one of them lies behind edge i. `graph_is_ours`: nobody else will use the graph afterwards.
  virtual void plan(const std::vector<bool>& leads_to_block, bool graph_is_ours) = 0;
  virtual void forget_plan() = 0;
};

/// Prepares a loss's graph for the one backward pass from which products of a few parameters ("blocks") start. A
/// product of block k needs the second derivatives of the nodes between loss and block only. While the plan lives, the
/// other nodes (of earlier layers, of other branches) are run without recording, and, if the graph is ours, their
/// buffers are freed when the next node starts; nodes on the way are told what they need to keep.
class ProductPlan {
 public:
  ProductPlan(const at::Tensor& loss, const std::vector<at::Tensor>& blocks, bool graph_is_ours);
  ~ProductPlan();
  ProductPlan(const ProductPlan&) = delete;
  ProductPlan& operator=(const ProductPlan&) = delete;

  /// The leaves the loss reaches; they live as long as the plan.
  const std::vector<torch::autograd::AccumulateGrad*>& leaves() const noexcept { return leaves_; }

  /// After the pass: whether a node on the way to each of the blocks has handed on a gradient without its graph, as a
  /// checkpoint or a fused layer does. The block's gradient depends on more than its graph says then.
  std::vector<char> lost(const std::vector<at::Tensor>& blocks) const;

 private:
  struct Shared;
  class Hook;
  class Check;
  c10::AutoGradMode grad_mode_{c10::GradMode::is_enabled()};  ///< hooks change it; restored at the end
  std::vector<detail::NodePtr> nodes_;
  std::vector<torch::autograd::AccumulateGrad*> leaves_;
  std::vector<std::pair<torch::autograd::Node*, uintptr_t>> checks_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace sgdph
