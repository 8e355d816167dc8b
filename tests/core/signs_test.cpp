// Sign vectors: random ones, reproducible by place, and the Hadamard cycle.

#include "signs.h"

#include "support/training.h"

#include <gtest/gtest.h>

namespace sgdph::test::signs_test {
namespace {

TEST(Rademacher, DrawsBothSignsAboutEquallyAndNothingElse) {
  const auto z = rademacher_like(torch::empty({100, 1001}, torch::kFloat32), {1, 0, 0, 0});
  EXPECT_EQ(z.scalar_type(), torch::kFloat32);
  EXPECT_TRUE(torch::equal(z.abs(), torch::ones_like(z)));
  EXPECT_LT(z.mean().abs().item<double>(), 5 / std::sqrt(100100.0));
}

TEST(Rademacher, DependsOnEveryPartOfThePlaceAndOnNothingElse) {
  const auto like = torch::empty({257}, torch::kFloat64);
  const auto z = rademacher_like(like, {1, 2, 3, 4});
  EXPECT_TRUE(torch::equal(z, rademacher_like(like, {1, 2, 3, 4})));
  for (const ProbePlace& other :
       {ProbePlace{2, 2, 3, 4}, ProbePlace{1, 1, 3, 4}, ProbePlace{1, 2, 4, 4}, ProbePlace{1, 2, 3, 5}}) {
    const auto overlap = (z * rademacher_like(like, other)).mean().abs().item<double>();
    EXPECT_LT(overlap, 5 / std::sqrt(257.0));
  }
}

TEST(Hadamard, FirstRowIsOnes) {
  const auto like = torch::empty({11}, torch::kFloat64);
  EXPECT_TRUE(torch::equal(hadamard_row_like(like, 0, 8), torch::ones_like(like)));
}

TEST(Hadamard, RowsAreOrthogonalExceptForChannelsThatAgreeModuloTheCycle) {
  for (const int64_t cycle : {1, 2, 8, 16}) {
    for (const int64_t channels : {3, 8, 13}) {
      const auto like = torch::empty({channels}, torch::kFloat64);
      std::vector<at::Tensor> rows;
      for (int64_t row = 0; row < cycle; ++row) rows.push_back(hadamard_row_like(like, row, cycle));
      const auto z = torch::stack(rows);
      const auto gram = z.t().mm(z) / static_cast<double>(cycle);
      for (int64_t i = 0; i < channels; ++i) {
        for (int64_t j = 0; j < channels; ++j) {
          EXPECT_EQ(gram[i][j].item<double>(), i % cycle == j % cycle ? 1 : 0) << cycle << ": " << i << ", " << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sgdph::test::signs_test
