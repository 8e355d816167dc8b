#pragma once

#include "support/training.h"

#include <gtest/gtest.h>

#include <functional>

namespace sgdph::test {

/// A block x with loss 0.5 x' A x and a matrix w with loss |w|^2, so gradients and row sums are known.
class Quadratic : public testing::Test {
 protected:
  const at::Tensor a = torch::tensor({{2.0, -0.5}, {-0.5, -3.0}}, torch::kFloat64);
  at::Tensor x = leaf({0.7, -0.4});
  at::Tensor w = torch::tensor({{1.0, 2.0}}, torch::kFloat64).requires_grad_(true);
  at::Tensor y = leaf({0.1, 0.2});  // the last 1-D parameter
  Parameters parameters{w, x, y};
  std::function<at::Tensor()> loss = [this] {
    return 0.5 * x.dot(a.mv(x)) + w.square().sum() + 0.5 * y.square().sum();
  };
  // |row sums| of A.
  const at::Tensor h = torch::tensor({1.5, 3.5}, torch::kFloat64);

  void expect(const at::Tensor& got, const at::Tensor& expected, const char* what) {
    EXPECT_TRUE(torch::allclose(got.detach(), expected, 1e-12, 1e-14)) << what << "\n" << got << "\n" << expected;
  }
};

}  // namespace sgdph::test
