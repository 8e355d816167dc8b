#include "inspect/estimates.h"

#include <ATen/Functions.h>
#include <sgdph/sgd_ph.h>
#include <torch/types.h>

#include <cmath>

namespace sgdph::lab::inspect {
namespace {

/// Measures every block at every step and moves nothing.
settings::Settings still_settings(const settings::Settings& run, const std::string& probe, bool every_1d) {
  settings::Settings s;
  s.opt = optimizers::kOwnOptimizer;
  s.seed = run.seed;
  s.optimizer = {
      {"lr", 0.},
      {"weight_decay", 0.},
      {"probe", probe},
      {"refresh", "all"},
      {"shift_guard", false},
      {optimizers::kBlocks, every_1d ? "published" : optimizers::kBlocksByModule}};
  // Of a run of another optimizer, what the command line gave.
  for (const auto* name : {"rule", "hessian_momentum", "probe_cycle"}) {
    if (run.optimizer.count(name) != 0) s.optimizer[name] = run.optimizer.at(name);
  }
  if (run.opt == s.opt && run.optimizer.count("eps") != 0) s.optimizer["eps"] = run.optimizer.at("eps");
  s.optimizer = optimizers::resolve_optimizer(s.opt, s.optimizer);
  return s;
}

}  // namespace

RunningEstimates::RunningEstimates(const torch::nn::Module& model, const settings::Settings& settings, bool every_1d) {
  for (const auto* probe : {"ones", "hadamard", "rademacher"}) {
    settings_ = still_settings(settings, probe, every_1d);
    probes_.emplace_back(probe);
    optimizers_.push_back(optimizers::make_optimizer(model, settings_.opt, settings_.optimizer, settings_.seed));
  }
}

std::vector<HeldEstimate> RunningEstimates::of(const HessianBlock& hessian, int64_t refreshes) {
  const auto& parameter = hessian.block.parameter;
  const auto matrix = hessian.filled().to(parameter.options().requires_grad(false));
  const auto index = at::tensor(hessian.channels, at::kLong);
  const auto known = [&](const at::Tensor& values) {
    return values.detach().to(at::kCPU, at::kDouble).index_select(0, index);
  };
  std::vector<HeldEstimate> all;
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    auto& optimizer = dynamic_cast<SGDPH&>(optimizers_[i]->base());
    at::Tensor divisor;
    optimizer.set_curvature_filter([&](const at::Tensor& curvature) { return divisor = curvature; });
    for (int64_t refresh = 1; refresh <= refreshes; ++refresh) {
      optimizer.update_curvature(0.5 * parameter.dot(matrix.mv(parameter)));
      // A gradient of zero at the last step, so that the optimizer works out what it would divide by.
      if (refresh == refreshes) parameter.mutable_grad() = at::zeros_like(parameter).detach();
      optimizer.step();
    }
    parameter.mutable_grad().reset();
    optimizer.set_curvature_filter(nullptr);
    const auto* state = optimizer.param_state(parameter);
    if (state == nullptr || state->refreshes() == 0) continue;
    HeldEstimate held{probes_[i], {}, {}};
    if (probes_[i] == "ones") {
      held.estimate = known(optimizer.last_step().blocks_refreshed.front().estimate);
    } else {
      held.estimate = known(state->curvature());
      const bool from_zero = settings_.optimizer.at("rule") == "reference" && probes_[i] == "rademacher";
      if (from_zero)
        held.estimate /=
            1 -
            std::pow(settings_.optimizer.at("hessian_momentum").get<double>(), static_cast<double>(state->refreshes()));
    }
    // The floor is relative to the whole block's mean.
    if (hessian.complete() && divisor.defined()) held.divisor = known(divisor);
    all.push_back(std::move(held));
  }
  return all;
}

}  // namespace sgdph::lab::inspect
