#include "inspect/figures.h"

#include "tables/statistics.h"

#include <ATen/Functions.h>
#include <torch/types.h>

namespace sgdph::lab::inspect {
namespace {

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
