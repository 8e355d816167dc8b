#include "train/training_step.h"
#include "models/models.h"
#include "support/checks.h"
#include "train/run_parts.h"

#include <gtest/gtest.h>
#include <sgdph/sgdph.h>
#include <torch/torch.h>

namespace sgdph::lab::train::training_step_test {
namespace {

using test::error_of;

struct Task {
  explicit Task(int64_t refresh_every = 1, const std::string& name = "sgd-ph") {
    torch::manual_seed(3);
    models::ModelOptions options;
    options.name = "resnet8";
    options.width = 0.5;
    model = models::make_model(options);
    model->to(torch::kDouble);
    settings::Settings settings;
    settings.opt = name;
    if (name == "sgd-ph") {
      settings.optimizer["refresh_every"] = refresh_every;
      settings.optimizer["shift_guard"] = false;
    }
    settings.optimizer = optimizers::resolve_optimizer(settings.opt, settings.optimizer);
    optimizer = optimizers::make_optimizer(*model, settings.opt, settings.optimizer, settings.seed);
    images = torch::randn({16, 3, 8, 8}, torch::kDouble);
    labels = torch::randint(0, 10, {16}, torch::kLong);
  }
  SGDPH& sgd_ph() const { return dynamic_cast<SGDPH&>(optimizer->base()); }
  std::vector<at::Tensor> buffers() const {
    std::vector<at::Tensor> copies;
    for (const auto& buffer : model->buffers()) copies.push_back(buffer.clone());
    return copies;
  }

  std::shared_ptr<models::ImageModel> model;
  std::unique_ptr<optimizers::TrainingOptimizer> optimizer;
  at::Tensor images, labels;
};

at::Tensor plain_loss(Task& task, int64_t count) {
  return torch::nn::functional::cross_entropy(
      task.model->forward(task.images.narrow(0, 0, count)), task.labels.narrow(0, 0, count));
}

/// Of the block of a new network, on the first images.
at::Tensor row_sum(const std::string& block_name, int64_t count) {
  Task plain;
  const auto block = plain.model->named_parameters()[block_name];
  const auto gradient = torch::autograd::grad({plain_loss(plain, count)}, {block}, {}, true, true)[0];
  return torch::autograd::grad({gradient.sum()}, {block})[0];
}

TEST(BatchPart, IsAFractionOrANumber) {
  EXPECT_EQ(optimizers::batch_part_from_text("1"), 1);
  EXPECT_EQ(optimizers::batch_part_from_text("1/8"), 0.125);
  EXPECT_EQ(optimizers::batch_part_from_text("0.25"), 0.25);
  EXPECT_EQ(optimizers::batch_part_from_text("3/4"), 0.75);
}

TEST(BatchPart, OfNothingOrMoreThanAllIsRefusedWithTheValue) {
  for (const auto* text : {"0", "2", "-1/8", "9/8", "1/0", "1/", "/8", "", "eighth", "1/8x", "nan", "0/0"}) {
    EXPECT_NE(
        error_of([&] { optimizers::batch_part_from_text(text); }).find("'" + std::string(text) + "'"),
        std::string::npos)
        << text;
  }
}

TEST(TrainingStep, TakesGradientsFromTheWholeBatchAndCurvatureFromItsFirstImages) {
  Task split;
  const TrainingStep step(*split.model, *split.optimizer, {0.25});
  step.clear_gradients();
  step.backward(step.forward(split.images, split.labels));
  split.optimizer->step();
  ASSERT_EQ(split.sgd_ph().last_step().blocks_refreshed.size(), 1);
  const auto estimate = split.sgd_ph().last_step().blocks_refreshed[0].estimate;

  EXPECT_TRUE(torch::allclose(estimate, row_sum(split.sgd_ph().last_step().blocks_refreshed[0].name, 4), 1e-10, 1e-12));

  Task whole;
  plain_loss(whole, 16).backward();
  const auto expected = whole.model->parameters();
  const auto found = split.model->parameters();
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(torch::equal(found[i].grad(), expected[i].grad())) << i;
}

TEST(TrainingStep, LeavesRunningStatisticsToTheWholeBatch) {
  Task split;
  const TrainingStep step(*split.model, *split.optimizer, {0.25});
  step.backward(step.forward(split.images, split.labels));
  Task whole;
  plain_loss(whole, 16);
  const auto found = split.buffers();
  const auto expected = whole.buffers();
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(torch::equal(found[i], expected[i])) << i;
}

TEST(TrainingStep, MeasuresOnlyWhenARefreshIsDue) {
  Task task(/*refresh_every=*/3);
  const TrainingStep step(*task.model, *task.optimizer, {0.5});
  std::string refreshed;
  for (int i = 0; i < 6; ++i) {
    step.clear_gradients();
    step.backward(step.forward(task.images, task.labels));
    task.optimizer->step();
    refreshed += task.sgd_ph().last_step().blocks_refreshed.empty() ? '.' : 'x';
  }
  EXPECT_EQ(refreshed, "x..x..");
}

TEST(TrainingStep, TakesAtLeastTwoImagesAndNoMoreThanThereAre) {
  for (const int64_t images : {16, 1}) {
    Task task;
    const TrainingStep step(*task.model, *task.optimizer, {0.01});
    step.backward(step.forward(task.images.narrow(0, 0, images), task.labels.narrow(0, 0, images)));
    EXPECT_TRUE(task.optimizer->step());
    ASSERT_EQ(task.sgd_ph().last_step().blocks_refreshed.size(), 1);
    const auto& block = task.sgd_ph().last_step().blocks_refreshed[0];
    EXPECT_TRUE(torch::allclose(block.estimate, row_sum(block.name, std::min<int64_t>(2, images)), 1e-10, 1e-12));
  }
}

TEST(TrainingStep, GivesAdaHessianItsCurvatureFromTheFirstImages) {
  const auto train = [](auto step_of) {
    Task task(1, "adahessian");
    step_of(task);
    task.optimizer->step();
    return task.model->parameters();
  };
  const auto found = train([](Task& task) {
    const TrainingStep step(*task.model, *task.optimizer, {0.25});
    step.backward(step.forward(task.images, task.labels));
  });
  const auto by_hand = [](int64_t count) {
    return [count](Task& task) {
      plain_loss(task, 16).backward();
      task.optimizer->update_curvature(plain_loss(task, count));
    };
  };
  const auto expected = train(by_hand(4));
  const auto other = train(by_hand(16));
  bool all_the_same = true;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(torch::equal(found[i], expected[i])) << i;
    all_the_same = all_the_same && torch::equal(found[i], other[i]);
  }
  EXPECT_FALSE(all_the_same);
}

TEST(SecondDerivatives, OfAllOurNetworksAreThere) {
  Task task;
  EXPECT_EQ(without_second_derivative(plain_loss(task, 4), task.model->parameters()), "");
}

TEST(SecondDerivatives, ThatAreMissingAreFoundBeforeTheyAreAskedFor) {
  auto weight = torch::eye(3, torch::kDouble).set_requires_grad(true);
  const auto loss = torch::nn::functional::ctc_loss(
      weight.log_softmax(1).unsqueeze(1), torch::tensor({{1}}), torch::tensor({3}), torch::tensor({1}));
  EXPECT_NE(without_second_derivative(loss, {weight}).find("_ctc_loss_backward"), std::string::npos);
}

}  // namespace
}  // namespace sgdph::lab::train::training_step_test
