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

TEST(CheckLoss, NamesWhatIsWrong) {
  const auto x = leaf({1, 2});
  EXPECT_ERROR(check_loss({}, "who"), "who", "undefined");
  EXPECT_ERROR(check_loss(x * 2, "who"), "scalar", "[2]");
  EXPECT_ERROR(check_loss(x.detach().sum(), "who"), "no graph");
}

}  // namespace
}  // namespace sgdph::test::autograd_test
