// What version 0.1 and other LibTorches wrote is read: runs that were stopped are continued, reports take the records.

#include "base/files.h"
#include "support/command.h"
#include "support/paths.h"
#include "support/sample_data.h"

#include <cmath>
#include <tuple>

namespace sgdph::test::samples_test {
namespace {

namespace fs = std::filesystem;

const fs::path kSamples = fs::path(kSamplesDir) / "0.1";

/// The samples' folder and the optimizer.
using Case = std::tuple<std::string, std::string>;

class Run : public CommandTest, public testing::WithParamInterface<Case> {};

TEST_P(Run, IsContinuedAsItWouldHaveGoneOn) {
  const auto& [samples, opt] = GetParam();
  const auto run = folder() / "run";
  fs::copy(fs::path(kSamplesDir) / samples / "runs" / opt, run, fs::copy_options::recursive);
  write_fashion_mnist(folder() / "data", 64, 32, 1);
  ASSERT_FALSE(fs::exists(run / "model.pt")) << "it had ended";
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

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return test_name(std::get<0>(info.param) + "_" + std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    Samples, Run,
    testing::Combine(
        testing::Values("0.1"),
        testing::Values("sgdm", "adam", "adamw", "adabelief", "adahessian", "apollo", "sgd-ph")),
    name_of);
INSTANTIATE_TEST_SUITE_P(
    LibTorch, Run,
    testing::Combine(
        testing::Values("libtorch/1.13", "libtorch/2.6", "libtorch/2.13"),
        testing::Values("sgdm", "adam", "adamw", "adabelief", "adahessian", "apollo", "lion", "sgd-ph")),
    name_of);

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
