#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace sgdph {

/// Refuses a loss that is undefined, not a scalar, or without a graph; `who` opens the message.
void check_loss(const at::Tensor& loss, const std::string& who);

/// Frees the buffers of the loss's graph, as `loss.backward()` does when it is done.
void release_graph(const at::Tensor& loss);

/// Adds into `parameter.grad()` as LibTorch does: the first gradient becomes the parameter's own, with its layout.
void accumulate_gradient(const at::Tensor& parameter, const at::Tensor& gradient);

}  // namespace sgdph
