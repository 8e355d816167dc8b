#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace sgdph::lab::cost {

struct PublishedProduct {
  std::vector<at::Tensor> gradients;  ///< of all parameters, without a graph
  at::Tensor row_sum;                 ///< of the block: H 1
};

/// Gradients and a block's row sum as in the published code: the second differentiation starts from the gradients of
/// the block and of every later parameter, with ones for the block and *explicit zeros* for the others, and asks for
/// all of these parameters. The block's entry equals our product; the rest is computed and thrown away.
/// `block` is an index into `parameters`, which are in the network's order. Frees the loss's graph.
PublishedProduct published_product(const at::Tensor& loss, const std::vector<at::Tensor>& parameters, size_t block);

}  // namespace sgdph::lab::cost
