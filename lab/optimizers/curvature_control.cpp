#include "optimizers/curvature_control.h"

#include <ATen/Functions.h>

namespace sgdph::lab::optimizers {

SGDPH::CurvatureFilter curvature_control(const OptimizerValues& values) {
  const auto control = values.find(kCurvatureControl);
  if (control == values.end()) return nullptr;
  if (control->second == kBlockMean) {
    return [](const at::Tensor& curvature) { return curvature.mean().expand_as(curvature).contiguous(); };
  }
  if (control->second == kConstantMultiplier) {
    const auto stand_in = values.at("lr_so").get<double>() / values.at(kBlockMultiplier).get<double>();
    return [stand_in](const at::Tensor& curvature) { return at::full_like(curvature, stand_in); };
  }
  return nullptr;
}

void set_curvature_control(torch::optim::Optimizer& optimizer, const OptimizerValues& values) {
  if (auto filter = curvature_control(values)) dynamic_cast<SGDPH&>(optimizer).set_curvature_filter(std::move(filter));
}

}  // namespace sgdph::lab::optimizers
