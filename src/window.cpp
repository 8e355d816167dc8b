#include "window.h"

#include <sgdph/hessian.h>

#include "detail/compat.h"
#include "detail/hooks.h"
#include "sgd_ph/shift_guard.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sgdph {
namespace {

/// Sums are kept in float32 at least.
at::ScalarType sum_type(const at::Tensor& parameter) {
  return at::promote_types(parameter.scalar_type(), at::kFloat);
}

/// Adds `value` times the weight to `sum`, without a change of bits if it is the first and counts once.
void add_to(at::Tensor& sum, at::Tensor value, const Weight& weight) {
  if (!value.defined()) return;
  value = value.to(at::promote_types(value.scalar_type(), at::kFloat));
  if (weight.factor != 1) value = value * weight.factor;
  if (weight.divisor.defined()) value = value / weight.divisor.reshape({}).to(value.device(), value.scalar_type());
  sum = sum.defined() ? sum + value : value;
}

/// From coarse to fine.
constexpr std::array<at::ScalarType, 4> kTypes{at::kBFloat16, at::kHalf, at::kFloat, at::kDouble};

/// Shares of ranks that differ by less are the same, rounded.
constexpr double kAlike = 0.01;

}  // namespace

Weight::Weight(const BackwardOptions& options)
    : factor(options.represents() / options.scale()), divisor(options.scale_tensor()) {}

Weight Weight::size() const {
  auto size = *this;
  size.factor = std::abs(factor);
  if (divisor.defined()) size.divisor = divisor.abs();
  return size;
}

void Window::open(std::vector<DueParameter> due, std::vector<Probes> probes, bool joint) {
  open_ = true;
  joint_ = joint;
  due_ = std::move(due);
  probes_ = std::move(probes);
  sums_.resize(due_.size());
}

bool Window::has_second_probe() const {
  return std::any_of(probes_.begin(), probes_.end(), [](const Probes& one) { return one.second.defined(); });
}

Window::Sum Window::product_of(size_t i, const at::Tensor& gradient, bool retain_graph) const {
  const auto& parameter = due_[i].parameter;
  const auto& [probe, second] = probes_[i];
  Sum sum;
  if (second.defined()) {
    const auto found = std::find(kTypes.begin(), kTypes.end(), sgd_ph::coarsest_type(gradient));
    if (found != kTypes.end()) sum.types[static_cast<size_t>(found - kTypes.begin())] = 1;
  }
  sum.estimate = probe * hessian_vector_product(gradient, parameter, probe, retain_graph || second.defined());
  if (second.defined()) {
    sum.second_product = hessian_vector_product(gradient, parameter, second, retain_graph);
    sum.gradient = gradient.detach().clone();
  }
  return sum;
}

Window::Sum Window::product_or_reason(size_t i, const at::Tensor& gradient, bool retain_graph) const {
  try {
    return product_of(i, gradient, retain_graph);
  } catch (const std::exception& error) {
    Sum none;
    none.why = detail::missing_derivative(error);
    if (none.why.empty()) throw;
    return none;
  }
}

std::vector<Window::Sum> Window::joint_product(
    const std::vector<bool>& asked, const GraphGradients& found, bool retain_graph) const {
  std::vector<at::Tensor> gradients, parameters, probes;
  for (size_t i = 0; i < due_.size(); ++i) {
    if (!asked[i]) continue;
    gradients.push_back(found.wanted[i]);
    parameters.push_back(due_[i].parameter);
    probes.push_back(probes_[i].probe);
  }
  std::vector<Sum> sums(due_.size());
  std::vector<at::Tensor> products;
  try {
    products = hessian_vector_product(gradients, parameters, probes, retain_graph);
  } catch (const std::exception& error) {
    const auto why = detail::missing_derivative(error);
    if (why.empty()) throw;
    for (size_t i = 0; i < due_.size(); ++i) sums[i].why = asked[i] ? why : "";
    return sums;
  }
  size_t next = 0;
  for (size_t i = 0; i < due_.size(); ++i) {
    if (!asked[i]) continue;
    auto& product = products[next++];
    // Of a network's size, so in place where it can be: of parameters that are added up, the product may be one
    // tensor for both, and where the Hessian is the identity, it may be the probe itself.
    const bool own = product.use_count() == 1 && product.storage().use_count() == 1;
    sums[i].estimate = own ? product.mul_(probes_[i].probe) : product * probes_[i].probe;
  }
  return sums;
}

/// What one loss adds; estimates are undefined where it does not reach the parameter or its product cannot be had.
std::vector<Window::Sum> Window::products_of(const GraphGradients& found, bool retain_graph) const {
  // Those alone: on the way to others lie nodes that are not to be run again.
  std::vector<bool> asked;
  for (size_t i = 0; i < due_.size(); ++i) asked.push_back(found.wanted[i].defined() && found.lost[i] == 0);
  const auto last = std::find(asked.rbegin(), asked.rend(), true);
  if (last == asked.rend()) return std::vector<Sum>(due_.size());
  if (joint_) return joint_product(asked, found, retain_graph);
  const auto last_asked = static_cast<size_t>(asked.rend() - last - 1);
  std::vector<Sum> sums(due_.size());
  for (size_t i = 0; i < due_.size(); ++i) {
    if (asked[i]) sums[i] = product_or_reason(i, found.wanted[i], retain_graph || i != last_asked);
  }
  return sums;
}

void Window::add(const GraphGradients& gradients, const Weight& weight, bool retain_graph) {
  std::vector<Sum> found;
  {
    // A product comes by the forward graph as well. The gradient is what it was after hooks on activations; what comes
    // now is none.
    const detail::NodeHooksAside aside(detail::graph_of(gradients.wanted));
    found = products_of(gradients, retain_graph);
  }
  at::Tensor scale;
  for (const auto& size : gradients.sizes) {
    if (size.defined()) scale = scale.defined() ? at::maximum(scale, size.to(scale.device())) : size;
  }
  add_to(gradient_scale_, scale, weight.size());
  int64_t first = 0, second = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!gradients.wanted[i].defined()) continue;
    first += found[i].estimate.defined() ? 1 : 0;
    second += found[i].second_product.defined() ? 1 : 0;
    sums_[i].reached += 1;
    sums_[i].with_graph += gradients.wanted[i].requires_grad() ? 1 : 0;
    sums_[i].lost += found[i].estimate.defined() ? 0 : 1;
    if (sums_[i].why.empty()) sums_[i].why = std::move(found[i].why);
    for (size_t k = 0; k < kTypes.size(); ++k) sums_[i].types[k] += found[i].types[k];
    add_to(sums_[i].estimate, std::move(found[i].estimate), weight);
    add_to(sums_[i].second_product, std::move(found[i].second_product), weight);
    add_to(sums_[i].gradient, std::move(found[i].gradient), weight);
  }
  products_ += joint_ ? std::min<int64_t>(first, 1) : first + second;
  measured = true;
}

bool Window::average(const CurvatureOptimizer::AllReduce& all_reduce) {
  if (due_.empty()) return true;
  auto type = at::kFloat;
  for (const auto& due : due_) type = at::promote_types(type, due.parameter.scalar_type());
  const auto options = due_.front().parameter.options().dtype(type).requires_grad(false);

  std::vector<at::Tensor> parts;
  std::vector<double> counts;
  const auto put = [&](const at::Tensor& value, const at::Tensor& parameter) {
    parts.push_back(
        value.defined() ? value.to(options.device(), type).flatten() : at::zeros(parameter.numel(), options));
  };
  for (size_t i = 0; i < due_.size(); ++i) {
    put(sums_[i].estimate, due_[i].parameter);
    counts.push_back(sums_[i].reached);
    counts.push_back(sums_[i].with_graph);
    counts.push_back(sums_[i].lost);
    counts.insert(counts.end(), sums_[i].types.begin(), sums_[i].types.end());
    counts.push_back(due_[i].here ? 1 : 0);
    counts.push_back(sums_[i].reached > 0 ? 1 : 0);
    if (!probes_[i].second.defined()) continue;
    put(sums_[i].second_product, due_[i].parameter);
    put(sums_[i].gradient, due_[i].parameter);
  }
  counts.push_back(measured ? 1 : 0);
  counts.push_back(1);
  const auto one = at::zeros({1}, options);
  put(gradient_scale_, one);
  parts.push_back(at::tensor(counts, at::kDouble).to(options.device(), type));

  auto flat = at::cat(parts);
  all_reduce(flat);
  int64_t offset = 0;
  const auto take = [&](const at::Tensor& parameter) {
    const auto part = flat.narrow(0, offset, parameter.numel()).view(parameter.sizes());
    offset += parameter.numel();
    return part.to(parameter.device(), sum_type(parameter));
  };
  for (size_t i = 0; i < due_.size(); ++i) {
    const auto& parameter = due_[i].parameter;
    sums_[i].estimate = take(parameter);
    if (!probes_[i].second.defined()) continue;
    sums_[i].second_product = take(parameter);
    sums_[i].gradient = take(parameter);
  }
  gradient_scale_ = take(one).squeeze();
  const auto averaged = flat.narrow(0, offset, static_cast<int64_t>(counts.size())).to(at::kCPU, at::kDouble);
  const auto* count = averaged.data_ptr<double>();
  const double all = count[averaged.numel() - 1];  // one, or the number of ranks if the function adds up
  bool as_agreed = true;
  for (size_t i = 0; i < due_.size(); ++i) {
    auto& sum = sums_[i];
    sum.reached = *count++;
    sum.with_graph = *count++;
    sum.lost = *count++;
    for (auto& type : sum.types) type = *count++;
    const double here = *count++ / all, with_loss = *count++ / all;
    if (due_[i].share == 1) continue;
    as_agreed = as_agreed && std::abs(here - due_[i].share) < kAlike * due_[i].share;
    if (with_loss == 0) continue;
    for (auto* value : {&sum.estimate, &sum.second_product, &sum.gradient}) {
      if (value->defined()) value->div_(with_loss);
    }
  }
  measured = *count > 0;
  return as_agreed;
}

Measurements Window::take() {
  Measurements result;
  result.measured = measured;
  result.products = products_;
  if (gradient_scale_.defined() && has_second_probe()) result.gradient_scale = gradient_scale_.item<double>();
  for (size_t i = 0; i < due_.size(); ++i) {
    auto& sum = sums_[i];
    // Of one that was frozen on the way a part was measured.
    if (sum.reached == 0 || !due_[i].parameter.requires_grad()) continue;
    const auto type = std::find_if(sum.types.begin(), sum.types.end(), [](double calls) { return calls > 0; });
    auto& found = result.found.emplace_back();
    found.of = due_[i];
    found.estimate = std::move(sum.estimate);
    found.second_product = std::move(sum.second_product);
    found.gradient = std::move(sum.gradient);
    found.has_graph = sum.with_graph > 0 && sum.lost == 0;
    found.why = std::move(sum.why);
    if (type != sum.types.end()) found.type = kTypes[static_cast<size_t>(type - sum.types.begin())];
  }
  return result;
}

}  // namespace sgdph
