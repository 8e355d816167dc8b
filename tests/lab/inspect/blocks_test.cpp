#include "inspect/blocks.h"

#include "base/error.h"
#include "support/networks.h"

#include <gtest/gtest.h>

namespace sgdph::lab::inspect::blocks_test {
namespace {

std::vector<std::string> names_of(const std::vector<Block>& blocks) {
  std::vector<std::string> names;
  for (const auto& block : blocks) names.push_back(block.name);
  return names;
}

std::string refusal(const std::vector<Block>& all, const std::string& text) {
  try {
    choose_blocks(all, text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

using Names = std::vector<std::string>;
using Channels = std::vector<int64_t>;

TEST(Blocks, AreThoseOfSgdPhOrEvery1dParameter) {
  test::NetA model;
  EXPECT_EQ(names_of(blocks_of(*model, false)), (Names{"bn1.weight", "bn1.bias", "bn2.weight", "bn2.bias"}));
  EXPECT_EQ(names_of(blocks_of(*model, true)), (Names{"bn1.weight", "bn1.bias", "bn2.weight", "bn2.bias", "fc.bias"}));
  EXPECT_EQ(blocks_of(*model, false)[2].channels(), 6);
}

TEST(Blocks, AreChosenByNumberOrNameInTheNetworksOrder) {
  test::NetA model;
  const auto all = blocks_of(*model, true);
  EXPECT_EQ(names_of(choose_blocks(all, "all")), names_of(all));
  EXPECT_EQ(names_of(choose_blocks(all, "99")), names_of(all));
  EXPECT_EQ(names_of(choose_blocks(all, "1")), (Names{"bn1.weight"}));
  EXPECT_EQ(names_of(choose_blocks(all, "3")), (Names{"bn1.weight", "bn2.weight", "fc.bias"}));
  EXPECT_EQ(names_of(choose_blocks(all, "fc.bias,bn1.bias")), (Names{"bn1.bias", "fc.bias"}));
}

TEST(Blocks, OfTextThatMeansNoneAreRefused) {
  test::NetA model;
  const auto all = blocks_of(*model, false);
  EXPECT_NE(refusal(all, "bn1.weigth").find("did you mean 'bn1.weight'?"), std::string::npos);
  EXPECT_NE(refusal(all, "bn1.bias,bn1.bias").find("twice"), std::string::npos);
  for (const auto* text : {"0", "-1"}) EXPECT_NE(refusal(all, text).find("--blocks"), std::string::npos) << text;
  for (const auto* text : {"", "bn1.bias,", "1.5", "99999999999999999999"}) {
    EXPECT_NE(refusal(all, text).find("unknown block"), std::string::npos) << text;
  }
  EXPECT_NE(refusal({}, "all").find("no blocks"), std::string::npos);
}

TEST(Channels, AreSpreadFromTheFirstToTheLast) {
  EXPECT_EQ(spread_channels(4, 0), (Channels{0, 1, 2, 3}));
  EXPECT_EQ(spread_channels(4, 9), (Channels{0, 1, 2, 3}));
  EXPECT_EQ(spread_channels(9, 3), (Channels{0, 4, 8}));
  EXPECT_EQ(spread_channels(9, 1), (Channels{0}));
  for (int64_t most = 2; most < 64; ++most) {
    const auto channels = spread_channels(64, most);
    EXPECT_EQ(static_cast<int64_t>(channels.size()), most);
    EXPECT_EQ(channels.back(), 63);
    for (size_t i = 1; i < channels.size(); ++i) EXPECT_LT(channels[i - 1], channels[i]);
  }
}

}  // namespace
}  // namespace sgdph::lab::inspect::blocks_test
