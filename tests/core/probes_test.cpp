// The table of probes: a row for each, and the rest of the library agrees with it.

#include "sgd_ph/probes.h"

#include "support/training.h"

#include <gtest/gtest.h>

namespace sgdph::test::probes_test {
namespace {

using sgd_ph::probe_kind;

class Probes : public testing::TestWithParam<Probe> {};

TEST_P(Probes, HaveARowOfTheirOwn) {
  EXPECT_EQ(probe_kind(GetParam()).probe, GetParam());
}

TEST_P(Probes, HaveTheFloorThatIsInForceWhenNoneIsGiven) {
  EXPECT_EQ(SGDPHOptions().probe(GetParam()).effective_curvature_floor(), probe_kind(GetParam()).default_floor);
  EXPECT_EQ(SGDPHOptions().probe(GetParam()).curvature_floor(0.3).effective_curvature_floor(), 0.3);
}

TEST_P(Probes, AreRefusedForJointRefreshesUnlessTheyMayJoin) {
  const auto options = SGDPHOptions().probe(GetParam()).refresh(Refresh::Joint);
  if (probe_kind(GetParam()).may_join) {
    EXPECT_NO_THROW(options.check("here"));
  } else {
    EXPECT_ERROR(options.check("here"), "here", "Joint", to_string(GetParam()));
  }
}

TEST_P(Probes, DrawSignsInTheShapeAndTypeOfTheParameter) {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    const auto like = torch::empty({13}, type);
    for (uint64_t count = 0; count < 10; ++count) {
      const auto z = probe_kind(GetParam()).draw(like, {1, 2, 3, count}, SGDPHOptions());
      EXPECT_EQ(z.scalar_type(), type);
      EXPECT_TRUE(torch::equal(z.abs(), torch::ones_like(like)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Probes, testing::Values(Probe::Ones, Probe::Rademacher, Probe::Hadamard),
    [](const auto& info) { return to_string(info.param); });

}  // namespace
}  // namespace sgdph::test::probes_test
