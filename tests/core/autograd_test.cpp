// What a loss's graph and its gradients are put through around a measurement.

#include "autograd.h"

#include <sgdph/hessian.h>

#include "support/training.h"

#include <gtest/gtest.h>

namespace sgdph::test::autograd_test {
namespace {

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
}  // namespace sgdph::test::autograd_test
