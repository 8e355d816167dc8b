// What version 0.1 wrote is read: runs that were stopped are continued, reports take its records.

#include "base/files.h"
#include "support/command.h"
#include "support/paths.h"
#include "support/sample_data.h"

#include <cmath>

namespace sgdph::test::samples_test {
namespace {

namespace fs = std::filesystem;

const fs::path kSamples = fs::path(kSamplesDir) / "0.1";

class RunOf01 : public CommandTest, public testing::WithParamInterface<std::string> {};

TEST_P(RunOf01, IsContinuedAsItWouldHaveGoneOn) {
  const auto run = folder() / "run";
  fs::copy(kSamples / "runs" / GetParam(), run, fs::copy_options::recursive);
  write_fashion_mnist(folder() / "data", 64, 32, 1);
  ASSERT_TRUE(fs::exists(run / "checkpoint-000000003.ckpt"));
  succeed({"train", "--resume", run.string(), "--data-path", in_folder("data")});
  const auto expected = records_of(run / "whole.jsonl");
  const auto found = records_of(run / "log.jsonl");
  ASSERT_EQ(found.size(), expected.size());
  ASSERT_EQ(found.size(), 6U) << "header, four epochs, end";
  for (size_t i = 1; i < found.size(); ++i) {
    for (const auto* key : {"epoch", "step", "status", "steps", "best_epoch"}) {
      EXPECT_EQ(found[i].value(key, nlohmann::json()), expected[i].value(key, nlohmann::json())) << key;
    }
    // Room for sums in another order on another processor.
    for (const auto* key : {"train_loss", "test_loss"}) {
      const auto then = expected[i].value(key, 0.);
      EXPECT_NEAR(found[i].value(key, 0.), then, 1e-4 * std::abs(then)) << key << " of record " << i;
    }
    // Version 0.1 logged the rate of the step after the epoch, on a schedule that falls with every step.
    if (found[i].contains("lr")) {
      EXPECT_GE(found[i].at("lr").get<double>(), expected[i].at("lr").get<double>());
    }
  }
  EXPECT_TRUE(fs::exists(run / "model.pt"));
}

INSTANTIATE_TEST_SUITE_P(
    Samples, RunOf01, testing::Values("sgdm", "adam", "adamw", "adabelief", "adahessian", "apollo", "sgd-ph"),
    [](const auto& info) { return test_name(info.param); });

class RecordsOf01 : public CommandTest {};

TEST_F(RecordsOf01, AreReported) {
  const auto page = folder() / "page.md";
  const auto end =
      succeed({"report", (kSamples / "records").string(), "--format", "markdown", "--output", page.string()});
  EXPECT_EQ(end.errors, "");
  const auto text = lab::read_file(page);
  // The experiment, its runs, the cost of a step and a Hessian block.
  for (const auto* part : {"Two optimizers", "A sample must be small.", "SGD-PH", "resnet8", "bn1.weight"}) {
    EXPECT_PRED2(contains, text, part);
  }
  EXPECT_FALSE(contains(text, "Left out")) << text;
}

TEST_F(RecordsOf01, OfAnExperimentAreNotRunAnew) {
  fs::copy(kSamples / "records" / "two", folder() / "out", fs::copy_options::recursive);
  write_fashion_mnist(folder() / "data", 64, 32, 1);
  write_bytes(folder() / "two.toml", lab::read_file(kSamples / "two.toml"));
  const auto end = succeed(
      {"reproduce", "two.toml", "--data-path", in_folder("data"), "--threads", "1", "--output-dir", "out",
       "--dry-run"});
  EXPECT_PRED2(contains, end.out, "2 runs, 2 done, 0 to do");
}

}  // namespace
}  // namespace sgdph::test::samples_test
