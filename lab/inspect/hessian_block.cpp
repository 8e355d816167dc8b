#include "inspect/hessian_block.h"

#include "base/interrupt.h"
#include "records/inspect_record.h"
#include "train/compat.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <sgdph/detail/finite.h>
#include <sgdph/hessian.h>
#include <sgdph/sgd_ph.h>
#include <torch/types.h>

#include <memory>
#include <utility>
#include <vector>

namespace sgdph::lab::inspect {
namespace {

/// The guard's notice says "from now on", and here is no training.
class NoWarnings : public train::WarningHandler {
 public:
  void say(const std::string&) override {}
};

/// What SGD-PH itself finds of a block at its first refresh.
struct GuardFinding {
  bool shift_invariant = false;  ///< marked by the shift guard
  at::Tensor row_sum;  ///< as measured with the paper's probe; undefined if marked, or if the loss is constant
};

/// Two products. The loss's graph stays; `parameters` are all of the network, to which the guard compares.
GuardFinding ask_guard(const at::Tensor& loss, const std::vector<at::Tensor>& parameters, const at::Tensor& block) {
  // Paper: refreshes every block at once, and has no last block that is excluded.
  const auto options = SGDPHOptions(0).rule(Rule::Paper);
  std::vector<at::Tensor> others;
  for (const auto& parameter : parameters) {
    if (!parameter.is_same(block)) others.push_back(parameter);
  }
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>{block}, std::make_unique<SGDPHOptions>(options));
  if (!others.empty()) {
    groups.emplace_back(std::move(others), std::make_unique<SGDPHOptions>(SGDPHOptions(options).second_order(false)));
  }
  SGDPH optimizer(std::move(groups), options);
  NoWarnings silent;
  const train::WarningGuard guard(&silent);
  optimizer.update_curvature(loss);
  optimizer.step();  // without gradients nothing moves
  GuardFinding finding;
  const auto* state = optimizer.param_state(block);
  // One look, and the optimizer would want two; what is not above rounding is no row sum either.
  finding.shift_invariant =
      state != nullptr && (state->finding() == Finding::Suspect || state->finding() == Finding::NoEvidence);
  if (!optimizer.last_step().blocks_refreshed.empty()) {
    finding.row_sum = optimizer.last_step().blocks_refreshed.front().estimate;
  }
  return finding;
}

// Of the guard: the row sum, and random signs to compare it with.
constexpr int64_t kGuardProducts = 2;

at::Tensor as_double(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, at::kDouble);
}

at::Tensor index_of(const std::vector<int64_t>& channels) {
  return at::tensor(channels, at::kLong);
}

}  // namespace

bool HessianBlock::finite() const {
  return detail::count_non_finite({rows}) == 0;
}

at::Tensor HessianBlock::diagonal() const {
  return rows.gather(1, index_of(channels).unsqueeze(1)).squeeze(1);
}

at::Tensor HessianBlock::row_sum() const {
  return rows.sum(1);
}

at::Tensor HessianBlock::square() const {
  const auto own = rows.index_select(1, index_of(channels));
  return (own + own.t()) / 2;
}

at::Tensor HessianBlock::filled() const {
  const auto index = index_of(channels);
  auto matrix = at::zeros({rows.size(1), rows.size(1)}, at::kDouble);
  matrix.index_copy_(0, index, rows);
  matrix.index_copy_(1, index, matrix.index_select(0, index).t());
  matrix.index_put_({index.unsqueeze(1), index.unsqueeze(0)}, square());
  return matrix;
}

double HessianBlock::asymmetry() const {
  const auto own = rows.index_select(1, index_of(channels));
  const auto largest = own.abs().max().item<double>();
  return largest == 0 ? 0 : (own - own.t()).abs().max().item<double>() / largest;
}

int64_t products_of(const Block& block, int64_t max_channels) {
  return static_cast<int64_t>(spread_channels(block.channels(), max_channels).size()) + kGuardProducts;
}

HessianBlock measure_hessian(
    const LossFunction& loss, const std::vector<at::Tensor>& parameters, const Block& block, int64_t max_channels,
    const std::function<void()>& after_product) {
  HessianBlock result;
  result.block = block;
  const auto value = loss();
  const auto finding = ask_guard(value, parameters, block.parameter);
  result.shift_invariant = finding.shift_invariant;
  for (int64_t i = 0; i < kGuardProducts; ++i) after_product();

  const auto gradient = gradients(value, {block.parameter}, /*create_graph=*/true)[0];
  std::vector<at::Tensor> rows;
  for (const auto channel : spread_channels(block.channels(), max_channels)) {
    if (interrupted()) break;
    auto unit = at::zeros_like(block.parameter).detach();
    unit[channel] = 1;
    rows.push_back(as_double(hessian_vector_product(gradient, block.parameter, unit, /*retain_graph=*/true)));
    result.channels.push_back(channel);
    after_product();
  }
  result.rows = rows.empty() ? at::zeros({0, block.channels()}, at::kDouble) : at::stack(rows);
  if (finding.row_sum.defined() && !rows.empty()) {
    result.optimizer_row_sum = as_double(finding.row_sum).index_select(0, index_of(result.channels));
  }
  return result;
}

double deviation_over(
    const std::vector<LossFunction>& losses, const Block& block, const std::vector<int64_t>& channels, int64_t seed) {
  if (losses.size() < 2) return records::kUnknown;
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(seed));
  const auto bits = at::randint(2, block.parameter.sizes(), generator, at::kDouble);
  const auto signs = (2 * bits - 1).to(block.parameter.options().requires_grad(false));
  std::vector<at::Tensor> estimates;
  for (const auto& loss : losses) {
    const auto gradient = gradients(loss(), {block.parameter}, /*create_graph=*/true)[0];
    estimates.push_back(as_double(signs * hessian_vector_product(gradient, block.parameter, signs)));
  }
  const auto known = at::stack(estimates).flatten(1).index_select(1, index_of(channels));
  return known.var(0, /*unbiased=*/true).sum().sqrt().item<double>();
}

}  // namespace sgdph::lab::inspect
