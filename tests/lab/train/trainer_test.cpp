#include "train/trainer.h"
#include "models/state_dict.h"
#include "optimizers/options.h"
#include "support/checks.h"
#include "support/sample_data.h"
#include "train/evaluate.h"
#include "train/resolve.h"
#include "train/run_parts.h"
#include "train/schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sgdph/sgdph.h>
#include <torch/torch.h>

namespace sgdph::lab::train::trainer_test {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TempFolder;

class TrainerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = std::make_unique<TempFolder>();
    test::write_fashion_mnist(data_->path(), 96, 32, 1);
  }
  static void TearDownTestSuite() { data_.reset(); }

  static settings::Settings small(const std::string& opt) {
    settings::Settings settings;
    settings.data_path = data_->path().string();
    settings.width = 0.5;
    settings.batch_size = 16;
    settings.epochs = 2;
    settings.opt = opt;
    settings.threads = 1;
    return settings;
  }

  /// The network after a whole run.
  std::string train(const settings::Settings& settings, const std::string& name) {
    Progress progress(ProgressStyle::Quiet);
    auto parts = prepare_run(settings);
    const auto model = parts.model;
    const auto resolved = parts.settings;
    Trainer trainer(std::move(parts), RunFolder::create(folder_.path() / name, resolved), progress);
    EXPECT_EQ(trainer.run(), RunEnd::Finished);
    return models::save_state_dict(*model);
  }

  /// The same run from its checkpoint before the last, as if it had been killed after it.
  std::string continue_from_earlier(const settings::Settings& settings, const std::string& name) {
    const auto path = folder_.path() / name;
    fs::remove(checkpoints_in(path).front());
    Progress progress(ProgressStyle::Quiet);
    auto parts = prepare_run(settings);
    const auto model = parts.model;
    Trainer trainer(std::move(parts), RunFolder::open(path), progress);
    EXPECT_LT(trainer.state().step, 12);
    EXPECT_GT(trainer.state().step, 0);
    EXPECT_EQ(trainer.run(), RunEnd::Finished);
    return models::save_state_dict(*model);
  }

  static std::unique_ptr<TempFolder> data_;
  TempFolder folder_;
};
std::unique_ptr<TempFolder> TrainerTest::data_;

class EveryOptimizer : public TrainerTest, public testing::WithParamInterface<std::string> {};

TEST_P(EveryOptimizer, ContinuesWithTheSameBitsFromTheMiddleOfAnEpoch) {
  auto settings = small(GetParam());
  settings.checkpoint_every = 5;
  settings.lr_scheduler = "cosine";
  settings.lr_warmup_epochs = 0.5;
  const auto whole = train(settings, "run");
  EXPECT_EQ(continue_from_earlier(settings, "run"), whole);
}

INSTANTIATE_TEST_SUITE_P(Lab, EveryOptimizer, testing::ValuesIn(optimizers::optimizer_names()), [](const auto& info) {
  return test::test_name(info.param);
});

TEST_F(TrainerTest, DropoutContinuesWithTheSameBits) {
  auto settings = small("sgdm");
  const TempFolder cifar;
  test::write_cifar10(cifar.path(), 96, 16, 1);
  settings.dataset = "cifar10";
  settings.data_path = cifar.path().string();
  settings.model = "vgg11";
  settings.form = "imagenet";
  settings.width = 0.05;
  settings.checkpoint_every = 5;
  const auto whole = train(settings, "run");
  EXPECT_EQ(continue_from_earlier(settings, "run"), whole);
}

TEST_F(TrainerTest, ImagesTheNetworkIsTooDeepForAreRefused) {
  auto settings = small("sgdm");
  settings.model = "vgg11";
  settings.form = "imagenet";
  EXPECT_NE(error_of([&] { prepare_run(settings); }).find("does not take the 28x28 images"), std::string::npos);
}

TEST_F(TrainerTest, AStepIsThatOfABareLoop) {
  auto settings = small("sgdm");
  settings.epochs = 1;
  settings.label_smoothing = 0.1;
  settings.clip_grad_norm = 0.5;
  settings.optimizer["weight_decay"] = 0.01;
  const auto trained = train(settings, "run");

  const auto parts = prepare_run(settings);
  data::LoaderOptions options;
  options.batch_size = 16;
  options.seed = 1;
  data::Loader loader(*parts.data.train, options);
  torch::optim::SGD sgd(parts.model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01));
  loader.start(0);
  while (const auto batch = loader.next()) {
    sgd.zero_grad();
    namespace F = torch::nn::functional;
    F::cross_entropy(
        parts.model->forward(batch->images), batch->labels, F::CrossEntropyFuncOptions().label_smoothing(0.1))
        .backward();
    torch::nn::utils::clip_grad_norm_(parts.model->parameters(), 0.5);
    sgd.step();
  }
  EXPECT_EQ(models::save_state_dict(*parts.model), trained);
}

TEST_F(TrainerTest, AccumulatedBatchesGiveTheMeanGradient) {
  // Without norm layers two batches of 16 make the gradient of one of 32.
  auto settings = small("sgdm");
  settings.norm = "none";
  settings.augment = false;
  settings.epochs = 1;
  settings.batch_size = 32;
  settings.optimizer["lr"] = 0.01;
  train(settings, "whole");
  settings.batch_size = 16;
  settings.accumulate = 2;
  train(settings, "halves");
  const auto weights = [&](const std::string& name) {
    auto parts = prepare_run(settings);
    const auto before = parts.model->parameters()[0].detach().clone();
    load_weights(*parts.model, (folder_.path() / name / "model.pt").string());
    return parts.model->parameters()[0].detach() - before;
  };
  EXPECT_GT(weights("whole").abs().max().item<double>(), 1e-4);
  EXPECT_TRUE(torch::allclose(weights("whole"), weights("halves"), 1e-3, 1e-6));
}

TEST_F(TrainerTest, AccumulatedBatchesHaveTheCurvatureOfOneLargeBatch) {
  const auto first_curvature = [&](int64_t batch_size, int64_t accumulate) {
    auto settings = small("sgd-ph");
    settings.epochs = 1;
    settings.norm = "group";  // statistics of the batch would differ
    settings.augment = false;
    settings.batch_size = batch_size;
    settings.accumulate = accumulate;
    settings.optimizer["lr"] = 0;
    auto parts = prepare_run(settings);
    at::Tensor first;
    dynamic_cast<SGDPH&>(parts.optimizer->base()).set_curvature_filter([&first](const at::Tensor& curvature) {
      if (!first.defined()) first = curvature.clone();
      return curvature;
    });
    const auto resolved = parts.settings;
    Progress progress(ProgressStyle::Quiet);
    Trainer trainer(
        std::move(parts), RunFolder::create(folder_.path() / fmt::format("{}x{}", accumulate, batch_size), resolved),
        progress);
    trainer.run();
    return first;
  };
  const auto whole = first_curvature(32, 1);
  EXPECT_GT(whole.abs().max().item<double>(), 1e-6);
  EXPECT_TRUE(torch::allclose(first_curvature(16, 2), whole, 1e-3, 1e-6));
  EXPECT_FALSE(torch::allclose(first_curvature(16, 1), whole, 1e-3, 1e-6))
      << "half of the images are another curvature";
}

TEST_F(TrainerTest, EvaluationCountsAsANaiveLoopDoes) {
  const auto parts = prepare_run(small("sgdm"));
  parts.model->eval();
  data::LoaderOptions options;
  options.batch_size = 7;
  options.shuffle = false;
  data::Loader loader(*parts.data.test, options);
  const auto result = evaluate(*parts.model, loader, torch::kCPU);
  double loss = 0;
  int64_t top1 = 0;
  int64_t top5 = 0;
  torch::NoGradGuard no_grad;
  for (int64_t i = 0; i < 32; ++i) {
    auto image = torch::empty({1, 1, 28, 28});
    const auto label = parts.data.test->read(i, nullptr, image.data_ptr<float>());
    const auto scores = parts.model->forward(image)[0].to(torch::kDouble);
    loss -= scores.log_softmax(0)[label].item<double>();
    const auto better = scores.gt(scores[label]).sum().item<int64_t>();
    top1 += better < 1 ? 1 : 0;
    top5 += better < 5 ? 1 : 0;
  }
  EXPECT_EQ(result.images, 32);
  EXPECT_NEAR(result.loss, loss / 32, 1e-5);
  EXPECT_DOUBLE_EQ(result.top1, 100. * static_cast<double>(top1) / 32);
  EXPECT_DOUBLE_EQ(result.top5, 100. * static_cast<double>(top5) / 32);
  EXPECT_FALSE(parts.model->is_training());
}

double lr_at(const settings::Settings& settings, int64_t step, int64_t steps_per_epoch) {
  auto weight = torch::zeros({1});
  torch::optim::SGD sgd({weight}, torch::optim::SGDOptions(1.));
  const auto schedule = make_schedule(sgd, settings, steps_per_epoch);
  for (int64_t i = 0; i < step; ++i) schedule->step();
  return static_cast<torch::optim::SGDOptions&>(sgd.param_groups()[0].options()).lr();
}

TEST(Schedule, CountsEpochsInSteps) {
  settings::Settings settings;
  settings.epochs = 10;
  settings.lr_step_size = 3;
  EXPECT_DOUBLE_EQ(lr_at(settings, 29, 10), 1);
  EXPECT_DOUBLE_EQ(lr_at(settings, 30, 10), 0.1);
  EXPECT_NEAR(lr_at(settings, 60, 10), 0.01, 1e-12);
  settings.lr_scheduler = "multistep";
  settings.lr_milestones = {2, 5};
  EXPECT_DOUBLE_EQ(lr_at(settings, 19, 10), 1);
  EXPECT_DOUBLE_EQ(lr_at(settings, 20, 10), 0.1);
  settings.lr_scheduler = "cosine";
  EXPECT_NEAR(lr_at(settings, 50, 10), 0.5, 1e-12);
  EXPECT_NEAR(lr_at(settings, 100, 10), 0, 1e-12);
  settings.lr_scheduler = "constant";
  EXPECT_DOUBLE_EQ(lr_at(settings, 99, 10), 1);
  settings.lr_warmup_epochs = 0.5;
  settings.lr_warmup_decay = 0.5;
  EXPECT_DOUBLE_EQ(lr_at(settings, 0, 10), 0.5);
  EXPECT_DOUBLE_EQ(lr_at(settings, 5, 10), 1);
}

TEST(Resolve, FillsEverySettingOfTheOptimizer) {
  for (const auto& entry : optimizers::optimizer_entries()) {
    settings::Settings settings;
    settings.opt = entry.info.name;
    auto resolved = resolve(settings);
    for (const auto& field : settings::fields_of(resolved)) {
      // The rate Apollo begins with follows the learning rate, also when that is changed.
      EXPECT_EQ(field.is_set(), field.key != "init_lr") << settings.opt << " " << field.key;
    }
  }
}

TEST(Resolve, TheRunsOwnSettingsAreTheOnlyOnesItContinuesWith) {
  settings::Settings stored;
  stored.epochs = 2;
  auto given = stored;
  given.threads = 7;
  given.epochs = 3;
  check_same_run(stored, given);
  given.label_smoothing = 0.1;
  EXPECT_NE(
      error_of([&] { check_same_run(stored, given); }).find("label_smoothing is 0.0 in this run, not 0.1"),
      std::string::npos);
  given = stored;
  stored.lr_scheduler = given.lr_scheduler = "cosine";
  given.epochs = 3;
  EXPECT_NE(error_of([&] { check_same_run(stored, given); }).find("cosine"), std::string::npos);
}

}  // namespace
}  // namespace sgdph::lab::train::trainer_test
