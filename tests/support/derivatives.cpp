#include "support/derivatives.h"

#include <gtest/gtest.h>

namespace sgdph::test {
namespace {

using torch::autograd::grad;

Tensors defined(const Tensors& tensors) {
  Tensors found;
  for (const auto& tensor : tensors) {
    if (tensor.defined()) found.push_back(tensor);
  }
  return found;
}

Tensors random_like(const Tensors& tensors) {
  Tensors found;
  for (const auto& tensor : tensors) found.push_back(torch::randn(tensor.sizes(), torch::kFloat64));
  return found;
}

Tensors typed(const Tensors& tensors, torch::Dtype dtype) {
  Tensors found;
  for (const auto& tensor : tensors) found.push_back(tensor.to(dtype).detach().requires_grad_(true));
  return found;
}

/// A function with its inputs, result and gradient; the gradient's last entry belongs to what came in for the result.
struct Side {
  Tensors inputs;
  at::Tensor y;
  Tensors points;     ///< the defined inputs, then gy
  Tensors gradients;  ///< of the defined inputs

  Side(const TensorFunction& function, const Tensors& given, torch::Dtype dtype) {
    for (const auto& input : given) {
      inputs.push_back(input.defined() ? input.detach().to(dtype).requires_grad_(true) : at::Tensor());
    }
    y = function(inputs);
    points = defined(inputs);
  }
  void differentiate(const at::Tensor& gy) {
    points.push_back(gy.to(y.scalar_type()).detach().requires_grad_(true));
    gradients = grad({y}, defined(inputs), {points.back()}, /*retain_graph=*/true, /*create_graph=*/true);
  }
};

void expect_close(const at::Tensor& found, const at::Tensor& expected, double tolerance, const std::string& what) {
  EXPECT_LE(relative_difference(found, expected), tolerance) << what;
}

void expect_same_third(Side& ours, Side& reference, const Tensors& weights, double tolerance) {
  const auto second = [&](Side& side, Tensors& free, Tensors& second_weights) {
    free = typed(weights, side.y.scalar_type());
    auto found = grad(side.gradients, side.points, free, true, true, /*allow_unused=*/true);
    if (second_weights.empty()) second_weights = random_like(side.points);
    at::Tensor sum;
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i].defined()) continue;
      const auto term = (found[i] * second_weights[i].to(found[i].scalar_type())).sum();
      sum = sum.defined() ? sum + term : term;
    }
    auto at = side.points;
    at.insert(at.end(), free.begin(), free.end());
    return grad({sum}, at, {}, true, false, /*allow_unused=*/true);
  };
  Tensors free, second_weights;
  const auto expected = second(reference, free, second_weights);
  const auto found = second(ours, free, second_weights);
  for (size_t i = 0; i < found.size(); ++i) {
    expect_close(found[i], expected[i], tolerance, "third derivative " + std::to_string(i));
  }
}

}  // namespace

double relative_difference(const at::Tensor& found, const at::Tensor& expected) {
  if (!found.defined() && !expected.defined()) return 0;
  const auto a = found.defined() ? found.detach().to(torch::kFloat64) : torch::zeros({}, torch::kFloat64);
  const auto b = expected.defined() ? expected.detach().to(torch::kFloat64) : torch::zeros({}, torch::kFloat64);
  EXPECT_TRUE(!found.defined() || !expected.defined() || a.sizes() == b.sizes()) << a.sizes() << " " << b.sizes();
  const auto difference = (a - b).abs().max().item<double>() / std::max(1., b.abs().max().item<double>());
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const auto x = a.detach();
  const auto y = b.detach();
  return (x.eq(y) | (x.ne(x) & y.ne(y))).all().item<bool>();
}

Tensors subset(const Tensors& all, size_t bits) {
  Tensors found;
  for (size_t i = 0; i < all.size(); ++i) {
    if ((bits >> i & 1) != 0) found.push_back(all[i]);
  }
  return found;
}

void expect_same_derivatives(
    const TensorFunction& our_function, const TensorFunction& reference_function, const Tensors& inputs,
    const DerivativeCheck& check) {
  Side ours(our_function, inputs, inputs[0].scalar_type());
  Side reference(reference_function, inputs, torch::kFloat64);
  ASSERT_EQ(ours.y.scalar_type(), inputs[0].scalar_type());
  ASSERT_EQ(ours.y.sizes(), reference.y.sizes());
  expect_close(ours.y, reference.y, check.tolerance, "value");
  const auto gy = torch::randn(reference.y.sizes(), torch::kFloat64);
  ours.differentiate(gy);
  reference.differentiate(gy);
  const auto count = ours.gradients.size();
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(ours.gradients[i].scalar_type(), ours.points[i].scalar_type());
    expect_close(ours.gradients[i], reference.gradients[i], check.tolerance, "gradient " + std::to_string(i));
    ASSERT_EQ(ours.gradients[i].requires_grad(), reference.gradients[i].requires_grad()) << "gradient " << i;
  }

  const auto weights = random_like(reference.gradients);
  const auto our_weights = typed(weights, ours.y.scalar_type());
  const size_t all_in = (size_t{1} << count) - 1;
  const size_t all_asked = (size_t{1} << (count + 1)) - 1;
  for (size_t in = check.every_subset ? 1 : all_in; in <= all_in; ++in) {
    const auto expected =
        grad(subset(reference.gradients, in), reference.points, subset(weights, in), true, false, true);
    for (size_t asked = check.every_subset ? 1 : all_asked; asked <= all_asked; ++asked) {
      const auto found =
          grad(subset(ours.gradients, in), subset(ours.points, asked), subset(our_weights, in), true, false, true);
      const auto wanted = subset(expected, asked);
      for (size_t i = 0; i < found.size(); ++i) {
        expect_close(
            found[i], wanted[i], check.tolerance,
            "double gradient " + std::to_string(i) + " of those asked for (" + std::to_string(asked) +
                "), coming in: " + std::to_string(in));
      }
    }
  }
  if (check.third) expect_same_third(ours, reference, weights, check.tolerance);
}

}  // namespace sgdph::test
