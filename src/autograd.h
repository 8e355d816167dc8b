#pragma once

#include "detail/hooks.h"

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace sgdph {

/// Refuses a loss that is undefined, not a scalar, or without a graph; `who` opens the message.
void check_loss(const at::Tensor& loss, const std::string& who);

/// Frees the buffers of the loss's graph, as `loss.backward()` does when it is done; with inputs those of the nodes
/// that lead to one of them.
void release_graph(const at::Tensor& loss, const std::vector<at::Tensor>& inputs = {});

/// What is asked of a pass beside the gradients it accumulates.
struct GraphRequest {
  std::vector<at::Tensor> wanted;    ///< leaves whose gradients are returned as well, with their graph
  std::vector<at::Tensor> measured;  ///< leaves whose gradients' size is wanted
  std::vector<at::Tensor> inputs;    ///< of the pass; empty: every leaf
  bool graph_is_ours = false;        ///< nobody else will use the loss's graph afterwards
};

struct GraphGradients {
  std::vector<at::Tensor> wanted;  ///< undefined where the loss does not reach one
  /// Of each wanted one: it came without its graph, or with a part of it, through a node whose backward cannot be
  /// differentiated. To run that again may even add to gradients, so it is not to be done.
  std::vector<char> lost;
  std::vector<at::Tensor> sizes;                ///< root mean squares, scalar tensors; undefined likewise
  std::shared_ptr<detail::KeptGradients> kept;  ///< by hooks; to live until the products are done
};

/// `loss.backward()`: the engine accumulates into the leaves and runs their hooks, on gradients that carry no graph.
/// The graph of the loss stays, but for what the plan of the products frees (ProductPlan).
GraphGradients backward_with_graph(const at::Tensor& loss, const GraphRequest& request);

/// The same without an effect on the gradients of these leaves, also where a node runs a backward pass of its own.
GraphGradients gradients_with_graph(
    const at::Tensor& loss, const GraphRequest& request, const std::vector<at::Tensor>& leaves);

/// The root mean square of a gradient, in float64.
at::Tensor root_mean_square(const at::Tensor& gradient);

}  // namespace sgdph
