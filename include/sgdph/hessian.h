#pragma once

#include <sgdph/api.h>

#include <ATen/core/Tensor.h>

#include <vector>

namespace sgdph {

/// Gradients of the loss, undefined where it does not depend on a parameter; `.grad` is left alone. With `create_graph`
/// they can be differentiated again, and the loss's graph stays; it also stays with `retain_graph`. Throws for sparse
/// gradients.
SGDPH_API std::vector<at::Tensor> gradients(
    const at::Tensor& loss, const std::vector<at::Tensor>& parameters, bool create_graph = false,
    bool retain_graph = false);

/// d(gradients . probes)/d parameters: the Hessian restricted to these parameters times the probes. Nothing else is
/// asked for, so nothing else is computed. Zero where a gradient does not depend on a parameter. The gradients must
/// carry a graph (`gradients` with create_graph), which stays with `retain_graph`.
SGDPH_API std::vector<at::Tensor> hessian_vector_product(
    const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& parameters,
    const std::vector<at::Tensor>& probes, bool retain_graph = false);
SGDPH_API at::Tensor hessian_vector_product(
    const at::Tensor& gradient, const at::Tensor& parameter, const at::Tensor& probe, bool retain_graph = false);

}  // namespace sgdph
