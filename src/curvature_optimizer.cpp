#include <sgdph/curvature_optimizer.h>

#include <sgdph/hessian.h>

#include "autograd.h"
#include "product_plan.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <optional>
#include <unordered_map>

namespace sgdph {
namespace {

/// The gradients that go with `wanted`, a selection of `parameters`.
std::vector<at::Tensor> select(
    const std::vector<at::Tensor>& wanted, const std::vector<at::Tensor>& parameters,
    const std::vector<at::Tensor>& gradients) {
  std::unordered_map<const at::TensorImpl*, size_t> position;
  for (size_t i = 0; i < parameters.size(); ++i) position[parameters[i].unsafeGetTensorImpl()] = i;
  std::vector<at::Tensor> selected;
  for (const auto& parameter : wanted) selected.push_back(gradients[position.at(parameter.unsafeGetTensorImpl())]);
  return selected;
}

}  // namespace

void CurvatureOptimizer::backward(const at::Tensor& loss, bool retain_graph) {
  check();
  check_loss(loss, name() + "::backward");
  const auto parameters = trainable_parameters();
  if (parameters.empty()) return;

  auto request = curvature_request();
  const bool due = !request.parameters.empty();
  std::optional<ProductPlan> plan;
  if (due) plan.emplace(loss, request.parameters, /*graph_is_ours=*/!retain_graph);
  auto gradients = sgdph::gradients(loss, parameters, /*create_graph=*/due, retain_graph);
  plan.reset();
  if (due) {
    torch::NoGradGuard no_grad;
    measure(request, select(request.parameters, parameters, gradients), gradients, retain_graph);
    for (auto& gradient : gradients) {
      if (gradient.defined()) gradient = gradient.detach();
    }
  }
  // On every step alike, and as `loss.backward()`: the graph is gone, also where this optimizer had no part in it.
  if (!retain_graph) release_graph(loss);
  for (size_t i = 0; i < parameters.size(); ++i) accumulate_gradient(parameters[i], gradients[i]);
}

void CurvatureOptimizer::update_curvature(const at::Tensor& loss) {
  check();
  check_loss(loss, name() + "::update_curvature");
  auto request = curvature_request();
  if (!request.parameters.empty()) {
    const auto parameters = request.with_scale ? trainable_parameters() : request.parameters;
    std::optional<ProductPlan> plan(std::in_place, loss, request.parameters, /*graph_is_ours=*/false);
    const auto gradients = sgdph::gradients(loss, parameters, /*create_graph=*/true, /*retain_graph=*/true);
    plan.reset();
    torch::NoGradGuard no_grad;
    measure(request, select(request.parameters, parameters, gradients), gradients, /*retain_graph=*/true);
  }
}

bool CurvatureOptimizer::curvature_due() {
  check();
  return !curvature_request().parameters.empty();
}

at::Tensor CurvatureOptimizer::probe_from_source(const at::Tensor& parameter) const {
  auto probe = probe_source_(parameter);
  TORCH_CHECK(
      probe.defined() && probe.sizes() == parameter.sizes() && probe.scalar_type() == parameter.scalar_type(), name(),
      ": the probe source must return a tensor of the parameter's shape ", parameter.sizes(), " and type ",
      parameter.scalar_type());
  return probe.detach().to(parameter.device());
}

void CurvatureOptimizer::all_reduce(at::Tensor& tensor) const {
  if (!all_reduce_) return;
  const auto sizes = tensor.sizes().vec();
  all_reduce_(tensor);
  TORCH_CHECK(
      tensor.defined() && tensor.sizes() == sizes, name(), ": the all-reduce function must keep the tensor's shape ",
      at::IntArrayRef(sizes));
}

std::vector<at::Tensor> CurvatureOptimizer::trainable_parameters() const {
  std::vector<at::Tensor> parameters;
  for (const auto& group : param_groups_) {
    for (const auto& parameter : group.params()) {
      if (parameter.requires_grad()) parameters.push_back(parameter);
    }
  }
  return parameters;
}

}  // namespace sgdph
