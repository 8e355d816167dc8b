// The loops of docs/loops.md, as they stand there: each trains, says nothing, and is what it claims to be.

#include <sgdph/sgdph.h>

#include "support/backwards.h"
#include "support/ranks.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>
#include <sstream>

namespace sgdph::test::loops_test {
namespace {

constexpr int64_t kClasses = 4;

struct Batch {
  at::Tensor images, labels;

  std::vector<Batch> split(int64_t count) const {
    std::vector<Batch> parts;
    const auto size = images.size(0) / count;
    for (int64_t i = 0; i < count; ++i) {
      parts.push_back({images.narrow(0, i * size, size), labels.narrow(0, i * size, size)});
    }
    return parts;
  }
};

/// Normalised by groups, so that parts of a batch are what they are within it.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("body", body);
    register_module("head", head);
  }
  at::Tensor forward(const at::Tensor& images) { return head->forward(body->forward(images).mean({2, 3})); }

  torch::nn::Sequential body{
      torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 6, 3).padding(1).bias(false)),
      torch::nn::GroupNorm(2, 6),
      torch::nn::SiLU(),
      torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 6, 3).padding(1).bias(false)),
      torch::nn::GroupNorm(3, 6),
      torch::nn::SiLU()};
  torch::nn::Linear head{6, kClasses};
};
TORCH_MODULE(Net);

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const auto& tensor : tensors) copies.push_back(tensor.detach().to(torch::kFloat64, false, /*copy=*/true));
  return copies;
}

double difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, (a[i] - b[i]).abs().max().item<double>());
  return largest;
}

class Loops : public testing::Test {
 protected:
  Loops() {
    torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
    torch::manual_seed(1);
    model = Net();
    body = model->body;
    start = copies_of(model->parameters());
    for (int i = 0; i < 24; ++i) {
      const auto images = torch::randn({8, 2, 5, 5}) + 0.5;
      // What is brightest: the left or right half, of the one channel or the other.
      const auto halves = torch::stack({images.narrow(3, 0, 2).mean({2, 3}), images.narrow(3, 3, 2).mean({2, 3})}, 2);
      batches.push_back({images, halves.flatten(1).argmax(1)});
    }
    testing::internal::CaptureStderr();
  }
  ~Loops() override {
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "a notice";
    torch::set_default_dtype(caffe2::TypeMeta::Make<float>());
  }

  double mean_loss(const std::vector<at::Tensor>& parameters) {
    torch::NoGradGuard no_grad;
    auto copy = Net();
    for (size_t i = 0; i < parameters.size(); ++i) copy->parameters()[i].copy_(parameters[i]);
    double sum = 0;
    for (const auto& batch : batches) {
      sum += torch::nn::functional::cross_entropy(copy->forward(batch.images), batch.labels).item<double>();
    }
    return sum / static_cast<double>(batches.size());
  }

  /// Every parameter has moved, and the loss is less.
  void expect_trained() {
    const auto end = copies_of(model->parameters());
    for (size_t i = 0; i < end.size(); ++i) EXPECT_FALSE(torch::equal(end[i], start[i])) << "parameter " << i;
    EXPECT_LT(mean_loss(end), mean_loss(start));
  }

  /// Where training ends whose steps are each backward of one loss.
  std::vector<at::Tensor> reference(
      const std::function<at::Tensor(Net&, const Batch&)>& loss, const std::function<void(Net&)>& then = {}) {
    auto plain = Net();
    {
      torch::NoGradGuard no_grad;
      for (size_t i = 0; i < start.size(); ++i) plain->parameters()[i].copy_(start[i]);
    }
    SGDPH optimizer(plain, SGDPHOptions(0.02));
    for (const auto& batch : batches) {
      optimizer.zero_grad();
      optimizer.backward(loss(plain, batch));
      if (then) then(plain);
      optimizer.step();
    }
    return copies_of(plain->parameters());
  }
  static at::Tensor plain_loss(Net& net, const Batch& batch) {
    return torch::nn::functional::cross_entropy(net->forward(batch.images), batch.labels);
  }
  void expect_end(const std::vector<at::Tensor>& expected) {
    EXPECT_LE(difference(copies_of(model->parameters()), expected), 1e-13);
  }

  Net model{nullptr};
  torch::nn::Sequential body{nullptr};
  std::vector<at::Tensor> start;
  std::vector<Batch> batches;
};

// It would put the includes in another order.
// clang-format off
TEST_F(Loops, Plain) {
#include "loops/what_they_share.inc"
#include "loops/plain.inc"
  expect_trained();
  EXPECT_EQ(optimizer.last_step().step, 24);
  EXPECT_EQ(optimizer.last_step().blocks_refreshed.size(), 1);
}

TEST_F(Loops, GradientAccumulation) {
#include "loops/what_they_share.inc"
#include "loops/gradient_accumulation.inc"
  expect_trained();
  expect_end(reference(plain_loss));
}

TEST_F(Loops, AccumulationWithOneMeasurement) {
#include "loops/what_they_share.inc"
#include "loops/accumulation_with_one_measurement.inc"
  expect_trained();
  EXPECT_EQ(optimizer.last_step().products, 1);
  // Near the curvature of all, since the first part counts four times and not once.
  const auto expected = reference(plain_loss);
  EXPECT_LT(difference(copies_of(model->parameters()), expected), 0.1 * difference(start, expected));
}

TEST_F(Loops, ScaledLoss) {
#include "loops/what_they_share.inc"
#include "loops/scaled_loss.inc"
  expect_trained();
  EXPECT_EQ(scale, 65536);
  expect_end(reference(plain_loss));
}

TEST_F(Loops, TwoLosses) {
#include "loops/two_losses.inc"
  expect_trained();
  expect_end(reference([](Net& net, const Batch& batch) {
    const auto scores = net->forward(batch.images);
    return torch::nn::functional::cross_entropy(scores, batch.labels) + 1e-3 * scores.square().mean();
  }));
}

TEST_F(Loops, Gan) {
  torch::nn::Sequential generator(
      torch::nn::Linear(4, 16), torch::nn::LayerNorm(torch::nn::LayerNormOptions({16})), torch::nn::SiLU(),
      torch::nn::Linear(16, 50), torch::nn::Unflatten(torch::nn::UnflattenOptions(1, {2, 5, 5})));
  torch::nn::Sequential critic(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 6, 3).bias(false)), torch::nn::GroupNorm(2, 6), torch::nn::SiLU(),
      torch::nn::Flatten(), torch::nn::Linear(54, 1));
  const auto before = copies_of(generator->parameters()), critic_before = copies_of(critic->parameters());
#include "loops/gan.inc"
  for (const auto* optimizer : {&to_make, &to_judge}) {
    EXPECT_EQ(optimizer->last_step().step, 24);
    int64_t refreshes = 0;
    for (const auto& entry : optimizer->partition().entries) {
      const auto* state = optimizer->param_state(entry.parameter);
      if (entry.second_order && state != nullptr) refreshes += state->refreshes();
    }
    EXPECT_GT(refreshes, 15) << "the other's passes do not end the window";
  }
  EXPECT_GT(difference(copies_of(generator->parameters()), before), 0);
  EXPECT_GT(difference(copies_of(critic->parameters()), critic_before), 0);
}

TEST_F(Loops, TwoOptimizers) {
#include "loops/what_they_share.inc"
#include "loops/two_optimizers.inc"
  expect_trained();
  EXPECT_EQ(second.last_step().blocks_refreshed.size(), 1);
}

TEST_F(Loops, Clipping) {
#include "loops/what_they_share.inc"
#include "loops/clipping.inc"
  expect_trained();
  expect_end(reference(plain_loss, [](Net& net) { torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0); }));
  EXPECT_EQ(optimizer.last_step().blocks_refreshed.size(), 1);
}

TEST_F(Loops, PartOfTheBatch) {
#include "loops/what_they_share.inc"
#include "loops/part_of_the_batch.inc"
  expect_trained();
  EXPECT_EQ(optimizer.last_step().blocks_refreshed.size(), 1);
}

TEST_F(Loops, FreezeAndUnfreeze) {
#include "loops/what_they_share.inc"
#include "loops/freeze_and_unfreeze.inc"
  expect_trained();
  for (const auto& entry : optimizer.partition().entries) {
    if (!entry.second_order) continue;
    EXPECT_GE(optimizer.param_state(entry.parameter)->refreshes(), 1) << entry.name;
  }
}

TEST_F(Loops, Closure) {
#include "loops/what_they_share.inc"
#include "loops/closure.inc"
  expect_trained();
  expect_end(reference(plain_loss));
}

TEST_F(Loops, Bfloat16) {
#include "loops/bfloat16.inc"
  // A gain of 1 moves in steps of 1/256 or not at all, its master by every step.
  std::vector<at::Tensor> masters;
  for (const auto& parameter : model->parameters()) {
    EXPECT_EQ(parameter.scalar_type(), torch::kBFloat16);
    masters.push_back(optimizer.param_state(parameter)->master());
    EXPECT_EQ(masters.back().scalar_type(), torch::kFloat);
  }
  const auto end = copies_of(masters);
  for (size_t i = 0; i < end.size(); ++i) EXPECT_FALSE(torch::equal(end[i], start[i])) << "parameter " << i;
  EXPECT_LT(mean_loss(end), mean_loss(start));
}

TEST_F(Loops, AnAbandonedBatch) {
  auto good = batches;
  batches[1].images = batches[1].images * std::nan("");
  batches[5].images = batches[5].images * std::nan("");
  {
#include "loops/what_they_share.inc"
#include "loops/an_abandoned_batch.inc"
    EXPECT_EQ(optimizer.last_step().step, 22);
    EXPECT_TRUE(optimizer.last_step().applied);
  }
  good.erase(good.begin() + 5);
  good.erase(good.begin() + 1);
  batches = good;
  expect_trained();
  expect_end(reference(plain_loss));
}

TEST_F(Loops, ANewHead) {
#include "loops/what_they_share.inc"
  testing::internal::CaptureStdout();
#include "loops/a_new_head.inc"
  const auto output = testing::internal::GetCapturedStdout();
  EXPECT_EQ(report.skipped.size(), 2);
  EXPECT_NE(output.find("head.weight"), std::string::npos) << output;
  EXPECT_NE(output.find("head.bias"), std::string::npos) << output;
  EXPECT_EQ(report.taken, static_cast<int64_t>(model->parameters().size()) - 2);
  optimizer.zero_grad();
  optimizer.backward(loss_of(batches[0]));
  optimizer.step();
  EXPECT_TRUE(optimizer.last_step().applied);
}

TEST_F(Loops, WhatCannotBeMeasured) {
  const auto loss_of = [&](const Batch& batch) {
    return torch::nn::functional::cross_entropy(FusedTanh::apply(model->forward(batch.images)), batch.labels);
  };
  testing::internal::CaptureStdout();
#include "loops/what_cannot_be_measured.inc"
  const auto output = testing::internal::GetCapturedStdout(), notice = testing::internal::GetCapturedStderr();
  testing::internal::CaptureStderr();
  EXPECT_NE(notice.find("not measurable"), std::string::npos) << "the one loop that has something to say";
  EXPECT_EQ(optimizer.partition().blocks(), 0);
  EXPECT_NE(output.find("not measurable"), std::string::npos) << output;
  EXPECT_TRUE(optimizer.last_step().applied);
}

TEST_F(Loops, ManyProcesses) {
  const auto expected = reference(plain_loss);
  const auto all = batches;
  Ranks ranks(2);
  std::vector<Net> models;
  for (size_t rank = 0; rank < 2; ++rank) {
    models.emplace_back(Net());
    torch::NoGradGuard no_grad;
    for (size_t i = 0; i < start.size(); ++i) models.back()->parameters()[i].copy_(start[i]);
  }
  ranks.run([&](size_t rank) {
    auto& model = models[rank];
    std::vector<Batch> batches;
    for (const auto& batch : all) batches.push_back(batch.split(2)[rank]);
    const auto average_over_ranks = [&](at::Tensor& tensor) { tensor = ranks.average(tensor); };
#include "loops/what_they_share.inc"
#include "loops/many_processes.inc"
  });
  EXPECT_TRUE(ranks.agreed);
  EXPECT_LE(difference(copies_of(models[0]->parameters()), expected), 1e-13);
  EXPECT_EQ(difference(models[0]->parameters(), models[1]->parameters()), 0);
}

// clang-format on

}  // namespace
}  // namespace sgdph::test::loops_test
