// Fused batch norm computes what LibTorch's operators compute, and so do its derivatives.

#include "support/batch_norm.h"
#include "support/training.h"

#include <gtest/gtest.h>

namespace sgdph::test::batch_norm_kernels_test {
namespace {

using torch::autograd::grad;

const std::vector<std::vector<int64_t>> kShapes{{5, 1},       {6, 3},       {4, 8},         {9, 13},      {3, 16},
                                                {4, 3, 7},    {2, 13, 8},   {5, 8, 1},      {4, 3, 1, 1}, {5, 8, 1, 1},
                                                {7, 1, 1, 1}, {3, 8, 2, 2}, {2, 13, 2, 2},  {3, 5, 7, 3}, {2, 16, 3, 5},
                                                {1, 3, 4, 4}, {3, 1, 4, 3}, {2, 3, 3, 2, 5}};

/// Every mode of the kernels on every shape and layout.
std::vector<BatchNormCase> all_cases(torch::Dtype dtype) {
  std::vector<BatchNormCase> cases;
  for (const auto& sizes : kShapes) {
    for (unsigned bits = 0; bits < 32; ++bits) {
      const bool channels_last = (bits & 1) != 0;
      if (channels_last && sizes.size() < 4) continue;
      cases.push_back(
          {sizes, channels_last, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0, dtype});
    }
  }
  return cases;
}

/// Running statistics are constants here: each call has its own.
void expect_derivatives(const BatchNormCase& c, const DerivativeCheck& check) {
  torch::manual_seed(7);
  expect_same_derivatives(
      [&](const Tensors& inputs) {
        return fused_batch_norm(c, inputs, running_statistics(c.sizes[1], inputs[0].scalar_type()));
      },
      [&](const Tensors& inputs) {
        const auto reference = check.third ? elementary_batch_norm : stock_batch_norm;
        return reference(c, inputs, running_statistics(c.sizes[1], inputs[0].scalar_type()));
      },
      batch_norm_inputs(c), check);
}

TEST(BatchNormKernels, AgreeWithLibTorchInDoubleForWhateverComesInAndIsAskedFor) {
  for (const auto& c : all_cases(torch::kFloat64)) {
    std::ostringstream what;
    what << c;
    SCOPED_TRACE(what.str());
    expect_derivatives(c, {});
    if (HasFailure()) return;
  }
}

TEST(BatchNormKernels, AgreeInFloatWithLibTorchInDouble) {
  for (const auto& c : all_cases(torch::kFloat32)) {
    std::ostringstream what;
    what << c;
    SCOPED_TRACE(what.str());
    DerivativeCheck check;
    check.tolerance = 4e-6;
    check.every_subset = false;
    expect_derivatives(c, check);
  }
}

TEST(BatchNormKernels, HaveAThirdDerivative) {
  for (const auto& c : all_cases(torch::kFloat64)) {
    std::ostringstream what;
    what << c;
    SCOPED_TRACE(what.str());
    DerivativeCheck check;
    check.every_subset = false;
    check.third = true;
    expect_derivatives(c, check);
    if (HasFailure()) return;
  }
}

TEST(BatchNormKernels, AreDifferentiatedRightWhereWhatComesInDependsOnTheInput) {
  for (const bool relu : {false, true}) {
    for (const bool training : {false, true}) {
      torch::manual_seed(3);
      BatchNormCase c{{4, 5, 3, 2}, false, training, relu, true};
      const auto cube = [&](auto batch_norm) {
        return [&c, batch_norm](const Tensors& inputs) {
          const auto running = running_statistics(c.sizes[1], torch::kFloat64);
          // Twice, one behind the other, and the input beside them.
          auto y = batch_norm(c, {inputs[0].tanh(), inputs[1], inputs[2], inputs[3]}, running);
          y = batch_norm(c, {y * inputs[0], inputs[1], inputs[2], inputs[3]}, running);
          return y * y * y + inputs[0] * y;
        };
      };
      DerivativeCheck check;
      check.third = true;
      expect_same_derivatives(cube(fused_batch_norm), cube(elementary_batch_norm), batch_norm_inputs(c), check);
    }
  }
}

TEST(BatchNormKernels, DoubleGradientWithAGraphIsTheOneWithout) {
  torch::manual_seed(5);
  const BatchNormCase c{{4, 3, 3, 3}, true, true, true, true};
  auto inputs = batch_norm_inputs(c);
  for (auto& input : inputs) input.requires_grad_(true);
  const auto loss = fused_batch_norm(c, inputs, running_statistics(3, torch::kFloat64)).pow(3).sum();
  const auto first = grad({loss}, inputs, {}, true, true);
  Tensors weights;
  for (const auto& gradient : first) weights.push_back(torch::randn_like(gradient));
  const auto plain = grad(first, inputs, weights, true, false);
  const auto with_graph = grad(first, inputs, weights, true, true);
  for (size_t i = 0; i < inputs.size(); ++i) EXPECT_LE(relative_difference(with_graph[i], plain[i]), 1e-10) << i;
}

TEST(BatchNormKernels, UpdateRunningStatisticsAsLibTorchDoes) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
    for (const auto& c : all_cases(dtype)) {
      torch::manual_seed(11);
      const auto inputs = batch_norm_inputs(c);
      const auto ours = running_statistics(c.sizes[1], dtype);
      auto theirs = running_statistics(c.sizes[1], dtype);
      for (auto& tensor : theirs) tensor = tensor.to(torch::kFloat64);
      Tensors in_double;
      for (const auto& input : inputs) in_double.push_back(input.defined() ? input.to(torch::kFloat64) : input);
      for (int repeat = 0; repeat < 2; ++repeat) {
        fused_batch_norm(c, inputs, ours);
        stock_batch_norm(c, in_double, theirs);
      }
      const double tolerance = dtype == torch::kFloat64 ? 1e-12 : 1e-6;
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_LE(relative_difference(ours[i], theirs[i]), tolerance) << c << " statistic " << i;
        EXPECT_TRUE(c.training || same_bits(ours[i], running_statistics(c.sizes[1], dtype)[i])) << c;
      }
    }
  }
}

/// d(v . gradients) of the input along a direction, by differences of first gradients.
TEST(BatchNormKernels, DoubleGradientIsTheDifferenceQuotientOfTheGradient) {
  for (const bool training : {true, false}) {
    torch::manual_seed(13);
    const BatchNormCase c{{3, 3, 2, 3}, false, training, true, true};
    auto inputs = batch_norm_inputs(c);
    {
      // Every value well away from the rectifier's kink.
      auto linear = c;
      linear.relu = false;
      const auto y = fused_batch_norm(linear, inputs, running_statistics(3, torch::kFloat64));
      inputs[1] = inputs[1] + y.sign() * 0.2;
    }
    inputs.push_back(torch::randn(c.sizes, torch::kFloat64));  // gy
    const auto first = [&](Tensors at, bool create_graph) {
      for (auto& tensor : at) tensor = tensor.detach().requires_grad_(true);
      const auto y = fused_batch_norm(c, at, running_statistics(3, torch::kFloat64));
      const Tensors of(at.begin(), at.begin() + 4);
      return std::pair(at, grad({y}, of, {at[4]}, true, create_graph));
    };
    Tensors weights;
    for (size_t i = 0; i < 4; ++i) weights.push_back(torch::randn_like(inputs[i]));
    const auto [points, gradients] = first(inputs, true);
    const auto found = grad(gradients, points, weights, false, false, true);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto direction = torch::randn_like(inputs[i]);
      const double h = 1e-5;
      const auto value = [&](double step) {
        auto moved = inputs;
        moved[i] = moved[i] + direction * step;
        const auto [at, gradients] = first(moved, false);
        double sum = 0;
        for (size_t k = 0; k < 4; ++k) sum += (gradients[k] * weights[k]).sum().item<double>();
        return sum;
      };
      const double quotient = (value(h) - value(-h)) / (2 * h);
      const double exact = found[i].defined() ? (found[i] * direction).sum().item<double>() : 0;
      EXPECT_NEAR(exact, quotient, 1e-7 * std::max(1., std::abs(quotient))) << "input " << i;
    }
  }
}

}  // namespace
}  // namespace sgdph::test::batch_norm_kernels_test
