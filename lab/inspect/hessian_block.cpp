#include "inspect/hessian_block.h"

#include "base/interrupt.h"
#include "inspect/guard.h"

#include <ATen/Functions.h>
#include <sgdph/detail/finite.h>
#include <sgdph/hessian.h>
#include <torch/types.h>

namespace sgdph::lab::inspect {
namespace {

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

}  // namespace sgdph::lab::inspect
