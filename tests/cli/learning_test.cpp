// A network learns with every optimizer at the rates of the recipe.

#include "optimizers/options.h"
#include "support/command.h"

namespace sgdph::test::learning_test {
namespace {

class EveryOptimizer : public CommandTest, public testing::WithParamInterface<std::string> {};

TEST_P(EveryOptimizer, LessensTheLoss) {
  const auto output = in_folder("run");
  succeed(small(GetParam(), 6, output, {"--recipe", "fashion-mnist", "--no-augment", "--train-limit", "0"}));
  const auto epochs = records_of(output + "/log.jsonl", "epoch");
  ASSERT_EQ(epochs.size(), 6U);
  EXPECT_LT(epochs.back().at("train_loss").get<double>(), 0.9 * epochs.front().at("train_loss").get<double>());
}

INSTANTIATE_TEST_SUITE_P(
    Command, EveryOptimizer, testing::ValuesIn(lab::optimizers::optimizer_names()),
    [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace sgdph::test::learning_test
