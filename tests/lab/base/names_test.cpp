#include "base/names.h"

#include <gtest/gtest.h>

#include "support/checks.h"

namespace sgdph::lab::names_test {
namespace {

struct Row {
  const char* name;
  int value;
};
const std::vector<Row> kRows{{"resnet18", 1}, {"vgg11", 2}};
const std::vector<std::pair<std::string, int>> kPairs{{"batch", 1}, {"layer", 2}};

TEST(Names, OfATableStandInItsOrder) {
  EXPECT_EQ(names_of(kRows), (std::vector<std::string>{"resnet18", "vgg11"}));
  EXPECT_EQ(names_of(kPairs), (std::vector<std::string>{"batch", "layer"}));
}

TEST(Names, FindTheirEntry) {
  EXPECT_EQ(find_named(kRows, "model", "vgg11").value, 2);
  EXPECT_EQ(&find_named(kRows, "model", "resnet18"), kRows.data());
  EXPECT_EQ(find_named(kPairs, "norm", "layer").second, 2);
}

TEST(Names, ThatAreUnknownAreRefusedWithTheNearest) {
  const auto expected = "unknown model 'resnet81' (did you mean 'resnet18'?); there are resnet18, vgg11";
  EXPECT_EQ(test::error_of([] { find_named(kRows, "model", "resnet81"); }), expected);
  EXPECT_EQ(test::error_of([] { check_name("model", "resnet81", names_of(kRows)); }), expected);
  EXPECT_EQ(
      test::error_of([] { find_named(kPairs, "norm", "quadratic"); }),
      "unknown norm 'quadratic'; there are batch, layer");
}

TEST(Names, AreNearBySlipsAndByTheirBeginning) {
  const std::vector<std::string> names{"resnet18", "vgg11", "mini-imagenet"};
  EXPECT_EQ(nearest_name("vgg1", names), "vgg11");
  EXPECT_EQ(nearest_name("gvg11", names), "vgg11");
  EXPECT_EQ(nearest_name("mini", names), "mini-imagenet");
  EXPECT_EQ(nearest_name("apollo", names), std::nullopt);
}

}  // namespace
}  // namespace sgdph::lab::names_test
