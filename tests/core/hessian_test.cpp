// The products our curvature is made of.

#include "hessian.h"

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

namespace sgdph::test {
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

TEST(ReleaseGraph, MakesASecondBackwardImpossible) {
  const auto x = leaf({1, 2});
  const auto loss = x.exp().square().sum();
  gradients(loss, {x}, true, false);
  release_graph(loss);
  EXPECT_ERROR(loss.backward(), "second time");
}

TEST(AccumulateGradient, OwnsItsGradientWhenTheEngineSharesOne) {
  const auto a = leaf({1, 2});
  const auto b = leaf({3, 4});
  const auto g = gradients((a + b).square().sum(), {a, b}, false, false);
  accumulate_gradient(a, g[0]);
  accumulate_gradient(b, g[1]);
  const auto before = b.grad().clone();
  a.mutable_grad().zero_();
  EXPECT_TRUE(torch::equal(b.grad(), before));
}

TEST(AccumulateGradient, StoresAnExpandedGradientDense) {
  const auto a = leaf({1, 2, 3});
  accumulate_gradient(a, gradients(a.sum(), {a}, false, false)[0]);
  EXPECT_EQ(a.grad().stride(0), 1);
  accumulate_gradient(a, gradients(a.square().sum(), {a}, false, false)[0]);
  EXPECT_TRUE(torch::equal(a.grad(), 1 + 2 * a.detach()));
}

TEST(CheckLoss, NamesWhatIsWrong) {
  const auto x = leaf({1, 2});
  EXPECT_ERROR(check_loss({}, "who"), "who", "undefined");
  EXPECT_ERROR(check_loss(x * 2, "who"), "scalar", "[2]");
  EXPECT_ERROR(check_loss(x.detach().sum(), "who"), "no graph");
}

}  // namespace
}  // namespace sgdph::test
