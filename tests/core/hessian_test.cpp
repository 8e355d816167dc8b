// The products our curvature is made of.

#include <sgdph/hessian.h>

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

namespace sgdph::test::hessian_test {
namespace {

TEST(HessianVectorProduct, EqualsTheClosedFormOfAQuadratic) {
  const auto a = torch::tensor({{2., 1.}, {1., 3.}}, torch::kFloat64);
  const auto x = leaf({0.3, -0.7});
  const auto gradient = gradients(0.5 * x.dot(a.mv(x)), {x}, /*create_graph=*/true, /*retain_graph=*/false)[0];
  EXPECT_TRUE(torch::allclose(hessian_vector_product(gradient, x, torch::ones_like(x)), a.sum(1)));
}

TEST(HessianVectorProduct, IsZeroForALinearLoss) {
  const auto x = leaf({1, 2, 3});
  const auto gradient = gradients((x * 5).sum(), {x}, true, false)[0];
  EXPECT_TRUE(torch::equal(hessian_vector_product(gradient, x, torch::ones_like(x)), torch::zeros_like(x)));
}

TEST(HessianVectorProduct, IsZeroForAParameterTheGradientDoesNotDependOn) {
  const auto x = leaf({1, 2});
  const auto y = leaf({3, 4});
  const auto g = gradients(x.square().sum() + y.sum(), {x, y}, true, false);
  const auto products = hessian_vector_product(g, {x, y}, {torch::ones_like(x), torch::ones_like(y)});
  EXPECT_TRUE(torch::allclose(products[0], torch::full_like(x, 2)));
  EXPECT_TRUE(torch::equal(products[1], torch::zeros_like(y)));
}

TEST(BruteForceHessian, AgreesWithFiniteDifferencesOfTheGradient) {
  for (const auto& kind : kProblemKinds) {
    auto problem = make_problem(kind);
    for (const auto& parameter : problem.model->parameters()) {
      if (parameter.dim() != 1) continue;
      const auto hessian = brute_force_hessian(problem.loss(), {parameter});
      const double h = 1e-5;
      for (int64_t i = 0; i < parameter.numel(); ++i) {
        const auto gradient_at = [&](double shift) {
          torch::NoGradGuard no_grad;
          parameter[i] += shift;
          at::Tensor gradient;
          {
            torch::AutoGradMode grad(true);
            gradient = torch::autograd::grad({problem.loss()}, {parameter})[0];
          }
          parameter[i] -= shift;
          return gradient;
        };
        const auto column = (gradient_at(h) - gradient_at(-h)) / (2 * h);
        EXPECT_TRUE(torch::allclose(hessian.select(1, i), column, 1e-5, 1e-8)) << kind << " channel " << i;
      }
    }
  }
}

}  // namespace
}  // namespace sgdph::test::hessian_test
