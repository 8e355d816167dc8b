#include "inspect/estimates.h"

#include "tables/statistics.h"

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
  for (const auto& name : estimate_options()) {
    if (run.optimizer.count(name) != 0) s.optimizer[name] = run.optimizer.at(name);
  }
  if (run.opt == s.opt && run.optimizer.count("eps") != 0) s.optimizer["eps"] = run.optimizer.at("eps");
  s.optimizer = optimizers::resolve_optimizer(s.opt, s.optimizer);
  return s;
}

/// All parameters of an optimizer but one need no gradient for a while: it waits for none of them.
class OthersFrozen {
 public:
  OthersFrozen(SGDPH& optimizer, const at::Tensor& parameter) {
    for (const auto& group : optimizer.param_groups()) {
      for (const auto& other : group.params()) {
        if (!other.is_same(parameter) && other.requires_grad()) frozen_.push_back(other);
      }
    }
    for (const auto& other : frozen_) other.set_requires_grad(false);
  }
  ~OthersFrozen() {
    for (const auto& other : frozen_) other.set_requires_grad(true);
  }
  OthersFrozen(const OthersFrozen&) = delete;
  OthersFrozen& operator=(const OthersFrozen&) = delete;

 private:
  std::vector<at::Tensor> frozen_;
};

double norm_of(const at::Tensor& tensor) {
  return tensor.norm().item<double>();
}

double quotient(double above, double below) {
  return below == 0 ? records::kUnknown : above / below;
}

std::vector<double> numbers_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const auto values = tensor.contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}

}  // namespace

const std::vector<std::string>& estimate_options() {
  static const std::vector<std::string> names{"rule", "hessian_momentum", "probe_cycle"};
  return names;
}

RunningEstimates::RunningEstimates(const torch::nn::Module& model, const settings::Settings& settings, bool every_1d)
    : probes_(optimizers::optimizer_entry(optimizers::kOwnOptimizer).option("probe")->choices) {
  for (const auto& probe : probes_) {
    settings_ = still_settings(settings, probe, every_1d);
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
    const OthersFrozen frozen(optimizer, parameter);
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

records::Agreement agreement(const at::Tensor& numbers, const at::Tensor& diagonal) {
  records::Agreement found;
  found.cosine = quotient(numbers.dot(diagonal).item<double>(), norm_of(numbers) * norm_of(diagonal));
  found.error = quotient(norm_of(numbers - diagonal), norm_of(diagonal));
  const auto there = diagonal.ne(0);
  const auto kept = numbers.masked_select(there);
  const auto truth = diagonal.masked_select(there);
  if (truth.numel() == 0) return found;
  found.same_sign = kept.sign().eq(truth.sign()).to(at::kDouble).mean().item<double>();
  found.median_ratio = tables::median_known(numbers_of((kept / truth).abs()));
  return found;
}

records::BlockRow block_row(const HessianBlock& hessian, const std::vector<HeldEstimate>& held) {
  records::BlockRow row;
  row.block = hessian.block.name;
  row.kind = hessian.block.kind;
  row.channels = hessian.block.channels();
  row.measured = hessian.rows.size(0);
  row.shift_invariant = hessian.shift_invariant;
  row.rows = hessian.channels;
  if (row.measured == 0) {
    row.note = "nothing measured";
    return row;
  }
  if (!hessian.finite()) {
    row.note = "not finite";
    return row;
  }
  const auto diagonal = hessian.diagonal();
  const auto row_sum = hessian.row_sum();
  row.diagonal = numbers_of(diagonal);
  row.row_sums = numbers_of(row_sum);
  auto couplings = hessian.rows.clone();
  couplings.scatter_(1, at::tensor(hessian.channels, at::kLong).unsqueeze(1), 0);
  row.off_diagonal = quotient(norm_of(couplings), norm_of(diagonal));
  row.row_sum = agreement(row_sum, diagonal);
  const auto eigenvalues = at::linalg_eigvalsh(hessian.square());
  row.smallest_eigenvalue = eigenvalues.min().item<double>();
  row.largest_eigenvalue = eigenvalues.max().item<double>();
  row.asymmetry = hessian.asymmetry();
  if (hessian.optimizer_row_sum.defined()) {
    row.product_error = quotient(norm_of(hessian.optimizer_row_sum - row_sum), norm_of(row_sum));
  }
  for (const auto& probe : held) {
    records::ProbeRow found;
    found.probe = probe.probe;
    found.estimate = agreement(probe.estimate, diagonal);
    if (probe.divisor.defined()) found.divisor = agreement(probe.divisor, diagonal.abs());
    found.values = numbers_of(probe.estimate);
    found.divisors = numbers_of(probe.divisor);
    row.probes.push_back(std::move(found));
  }
  return row;
}

}  // namespace sgdph::lab::inspect
