#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace sgdph {

/// d(gradients . probes)/d parameters: the Hessian restricted to these parameters times the probes. Nothing else is
/// asked for, so nothing else is computed. Zero where a gradient does not depend on a parameter. The gradients must
/// carry a graph (`torch::autograd::grad` with create_graph), which stays with `retain_graph`.
std::vector<at::Tensor> hessian_vector_product(
    const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& parameters,
    const std::vector<at::Tensor>& probes, bool retain_graph = false);
at::Tensor hessian_vector_product(
    const at::Tensor& gradient, const at::Tensor& parameter, const at::Tensor& probe, bool retain_graph = false);

}  // namespace sgdph
