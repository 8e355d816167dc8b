#include "train/trainer.h"
#include "base/clock.h"
#include "base/files.h"
#include "models/models.h"
#include "models/state_dict.h"
#include "optimizers/options.h"
#include "support/checks.h"
#include "support/sample_data.h"
#include "train/evaluate.h"
#include "train/resolve.h"
#include "train/run_parts.h"
#include "train/schedule.h"
#include "train/weights.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sgdph/sgdph.h>
#include <torch/torch.h>

#include <csignal>
#include <functional>
#include <memory>
#include <set>
#include <utility>

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

/// LibTorch 1.13 has layers and second derivatives that do not go together with autocast; such a run is refused before
/// it begins, and its test says why. Empty if it can be.
std::string refusal(const settings::Settings& settings) {
  try {
    prepare_run(settings);
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("--amp bf16: ", 0), 0U) << error.what();
    return error.what();
  }
  return "";
}

TEST_P(EveryOptimizer, WithAllThatARunMayHaveContinuesWithTheSameBits) {
  auto settings = small(GetParam());
  settings.checkpoint_every = 5;
  settings.accumulate = 2;
  settings.clip_grad_norm = 0.5;
  settings.label_smoothing = 0.1;
  settings.lr_scheduler = "linear";
  settings.stem_stride = 2;
  settings.eval_every = 0.5;
  if (optimizers::optimizer_entry(settings.opt).option(optimizers::kCurvatureBatch) != nullptr) {
    settings.optimizer[optimizers::kCurvatureBatch] = "1/2";
  }
  settings.val_split = 16;
  settings.model_ema = true;
  settings.model_ema_steps = 2;
  settings.model_ema_decay = 0.99;
  settings.lr_warmup_epochs = 0.5;
  settings.norm_weight_decay = 0;
  settings.bias_weight_decay = 1e-3;
  settings.amp = "bf16";
  if (!refusal(settings).empty()) settings.amp = "none";
  const auto path = folder_ / "run";
  const auto whole = train(settings, "run");
  const auto average = read_file(path / "ema.pt");
  const auto best = read_file(path / "best.pt");
  EXPECT_EQ(continue_from_earlier(settings, "run"), whole);
  EXPECT_EQ(read_file(path / "ema.pt"), average);
  EXPECT_EQ(read_file(path / "best.pt"), best);
  EXPECT_NE(average, whole);
}

TEST_P(EveryOptimizer, LearnsInBfloat16AsInFloat32ButForRounding) {
  auto settings = small(GetParam());
  settings.epochs = 4;
  // At full rate the first steps from random weights are wild, AdaHessian's above all: rounding decides where they
  // lead.
  settings.lr_warmup_epochs = 2;
  settings.amp = "bf16";
  if (const auto why = refusal(settings); !why.empty()) GTEST_SKIP() << why;
  const auto losses = [&](const std::string& amp) {
    settings.amp = amp;
    train(settings, amp);
    std::vector<double> found;
    for (const auto& record : records::read_log(folder_ / amp / "log.jsonl")) {
      if (record.at("type") == "epoch") found.push_back(record.at("train_loss").get<double>());
    }
    return found;
  };
  const auto whole = losses("none");
  const auto half = losses("bf16");
  EXPECT_NE(half, whole);
  EXPECT_NEAR(half.front(), whole.front(), 0.1 * whole.front());
  EXPECT_LT(half.back(), half.front());
}

TEST_P(EveryOptimizer, DecaysNormsAndBiasesAsTheyAreTold) {
  const auto moved = [&](double decay, std::optional<double> norm, std::optional<double> bias) {
    auto settings = small(GetParam());
    settings.optimizer["weight_decay"] = decay;
    settings.norm_weight_decay = norm;
    settings.bias_weight_decay = bias;
    const auto parts = prepare_run(settings);
    std::map<std::string, bool> result;
    // A loss that is zero everywhere, so that decay alone moves anything.
    auto loss = torch::zeros({});
    for (const auto& parameter : parts.model->parameters()) {
      parameter.detach().fill_(0.5);
      loss = loss + 0 * parameter.square().sum();
    }
    parts.optimizer->backward(loss);
    parts.optimizer->step();
    for (const auto& item : parts.model->named_parameters()) {
      const auto& name = item.key();
      const bool shift = name.find("bias") != std::string::npos;
      const auto* kind = item.value().dim() > 1 ? "weight" : !shift ? "gain" : name == "fc.bias" ? "bias" : "shift";
      const bool moves = item.value().ne(0.5).any().item<bool>();
      EXPECT_TRUE(result.count(kind) == 0 || result[kind] == moves) << name;
      result[kind] = moves;
    }
    return std::vector<bool>{result.at("weight"), result.at("gain"), result.at("shift"), result.at("bias")};
  };
  using Moves = std::vector<bool>;
  EXPECT_EQ(moved(0.1, {}, {}), (Moves{true, true, true, true}));
  EXPECT_EQ(moved(0, 0.1, {}), (Moves{false, true, true, false}));
  EXPECT_EQ(moved(0, {}, 0.1), (Moves{false, false, true, true}));
  EXPECT_EQ(moved(0, 0.1, 0.), (Moves{false, true, false, false}))
      << "a norm layer's bias is a bias, as in torchvision";
  EXPECT_EQ(moved(0.1, 0., 0.), (Moves{true, false, false, false}));
}

INSTANTIATE_TEST_SUITE_P(Lab, EveryOptimizer, testing::ValuesIn(optimizers::optimizer_names()), [](const auto& info) {
  return test::test_name(info.param);
});

/// Says of each image that it is read.
class Watched : public data::Dataset {
 public:
  Watched(std::unique_ptr<data::Dataset> data, std::function<void()> on_read)
      : data_(std::move(data)), on_read_(std::move(on_read)) {}
  int64_t size() const override { return data_->size(); }
  int64_t classes() const override { return data_->classes(); }
  data::ImageShape shape() const override { return data_->shape(); }
  int64_t read(int64_t index, data::Random* random, float* out) const override {
    on_read_();
    return data_->read(index, random, out);
  }

 private:
  std::unique_ptr<data::Dataset> data_;
  std::function<void()> on_read_;
};

void watch(std::unique_ptr<data::Dataset>& data, std::function<void()> on_read) {
  data = std::make_unique<Watched>(std::move(data), std::move(on_read));
}

TEST_F(TrainerTest, WithValidationTheTestSetIsReadAtTheEndOnly) {
  auto settings = small("sgdm");
  settings.val_split = 0.25;
  settings.workers = 0;
  settings.epochs = 3;
  settings.eval_every = 0.5;
  auto parts = prepare_run(settings);
  int64_t test_reads = 0;
  int64_t validation_reads = 0;
  watch(parts.data.test, [&] { ++test_reads; });
  watch(parts.data.validation, [&] { ++validation_reads; });
  EXPECT_EQ(parts.data.train->size(), 72);
  const auto resolved = parts.settings;
  Progress progress(ProgressStyle::Quiet);
  Trainer trainer(std::move(parts), RunFolder::create(folder_ / "run", resolved), progress);
  EXPECT_EQ(trainer.run(), RunEnd::Finished);
  EXPECT_EQ(validation_reads, 6 * 24) << "after each epoch and within it";
  const auto& records = trainer.log().records();
  const auto& end = records.back();
  EXPECT_EQ(test_reads, end.at("best_epoch") == 3 ? 32 : 64) << "by the last weights and the best, if others";
  EXPECT_EQ(records.front().at("validation_images"), 24);
  double best = 0;
  for (const auto& record : records) {
    if (record.at("type") == "epoch") best = std::max(best, record.at("val_top1").get<double>());
    EXPECT_EQ(record.contains("test_top1"), record.at("type") == "end") << record;
  }
  EXPECT_EQ(end.at("best_top1"), best);
}

TEST_F(TrainerTest, TimeBeforeAnInterruptionCountsOnce) {
  auto settings = small("sgd-ph");
  settings.workers = 0;
  settings.epochs = 3;
  settings.eval_every = 0.5;
  settings.checkpoint_every = 4;
  double now = 0;
  std::set<double> stops;
  const ClockGuard clock([&now] { return now; });
  // A second passes for each image that is read; at some of them comes Ctrl-C.
  const auto read = [&] {
    now += 1;
    if (stops.erase(now) > 0) std::raise(SIGINT);
  };
  const auto run_until_done = [&](const std::string& name) {
    int lives = 0;
    for (auto end = RunEnd::Interrupted; end == RunEnd::Interrupted; ++lives) {
      auto parts = prepare_run(settings);
      for (auto* data : {&parts.data.train, &parts.data.test}) watch(*data, read);
      const auto resolved = parts.settings;
      const auto path = folder_ / name;
      Progress progress(ProgressStyle::Quiet);
      auto folder = lives == 0 ? RunFolder::create(path, resolved) : RunFolder::open(path);
      end = Trainer(std::move(parts), std::move(folder), progress).run();
    }
    return lives;
  };
  /// All that tells of time or of how far the run was.
  const auto figures = [&](const std::string& name) {
    std::vector<nlohmann::json> kept;
    for (auto record : records::read_log(folder_ / name / "log.jsonl")) {
      if (record.at("type") == "header") continue;
      record.at("cost").erase("peak_memory_bytes");
      kept.push_back(record);
    }
    return kept;
  };
  EXPECT_EQ(run_until_done("calm"), 1);
  const auto calm = figures("calm");
  EXPECT_EQ(calm.back().at("cost").at("train_seconds"), 3 * 96) << "a second for each image of each epoch";
  // An epoch reads 96 images and 2 times 32: in a step, in the test within the epoch, in that at its end.
  now = 0;
  stops = {20, 90, 140, 250, 300, 420};
  EXPECT_EQ(run_until_done("stopped"), 7);
  EXPECT_EQ(figures("stopped"), calm);
}

TEST_F(TrainerTest, TheBestWeightsAreThoseOfTheBestEpochByValidation) {
  auto settings = small("sgdm");
  settings.val_split = 32;
  settings.epochs = 4;
  settings.keep_checkpoints = 10;
  settings.checkpoint_every = 5;
  // A rate that rises beyond all measure spoils the last epochs; by chance it may not, so that there are several runs.
  settings.lr_scheduler = "multistep";
  settings.lr_milestones = {2};
  settings.lr_gamma = 30;
  std::filesystem::path path;
  std::vector<nlohmann::json> records;
  int64_t best_epoch = 4;
  for (settings.seed = 1; best_epoch == 4 && settings.seed < 9; ++settings.seed) {
    path = folder_ / fmt::format("run{}", settings.seed);
    train(settings, path.filename());
    records = records::read_log(path / "log.jsonl");
    best_epoch = records.back().at("best_epoch").get<int64_t>();
  }
  ASSERT_LT(best_epoch, 4);
  // 64 images make 4 steps.
  const auto checkpoint = path / fmt::format("checkpoint-{:09}.ckpt", 4 * best_epoch);
  const auto model = formats::read_checkpoint(checkpoint).section("model", "");
  EXPECT_EQ(read_file(path / "best.pt"), model);
  EXPECT_NE(read_file(path / "model.pt"), model);

  const auto parts = prepare_run(settings);
  load_weights(*parts.model, (path / "best.pt").string());
  data::Loader loader(*parts.data.test, test_loader_options(parts.settings, *parts.data.test));
  EXPECT_EQ(evaluate(*parts.model, loader, torch::kCPU).top1, records.back().at("best_test_top1").get<double>());
}

TEST_F(TrainerTest, TheSplitHasASeedOfItsOwn) {
  auto settings = small("sgdm");
  settings.val_split = 32;
  const auto first_image = [&](int64_t seed, int64_t split_seed) {
    settings.seed = seed;
    settings.split_seed = split_seed;
    const auto parts = prepare_run(settings);
    auto image = torch::empty({28, 28});
    parts.data.validation->read(0, nullptr, image.data_ptr<float>());
    return image;
  };
  const auto image = first_image(1, 1);
  EXPECT_TRUE(torch::equal(first_image(2, 1), image));
  EXPECT_FALSE(torch::equal(first_image(1, 3), image));
  settings.val_split = 96;
  EXPECT_NE(error_of([&] { prepare_run(settings); }).find("--val-split: 96 leaves nothing"), std::string::npos);
}

TEST_F(TrainerTest, TheAverageOfWeightsIsThatOfTorchvision) {
  auto settings = small("sgdm");
  settings.model_ema = true;
  settings.model_ema_steps = 2;
  settings.model_ema_decay = 0.99;
  settings.epochs = 3;
  settings.lr_warmup_epochs = 1;
  settings.keep_checkpoints = 100;
  settings.checkpoint_every = 1;
  train(settings, "run");
  const auto path = folder_ / "run";
  // 6 steps an epoch: updates after the 1st, 3rd and 5th; those of the warm-up are copies, and so is the next.
  const auto decay = 1 - 0.01 * 16 * 2 / 3;
  std::vector<at::Tensor> average;
  for (const auto step : {7, 9, 11, 13, 15, 17}) {
    const auto parts = prepare_run(settings);
    load_weights(*parts.model, (path / fmt::format("checkpoint-{:09}.ckpt", step)).string());
    auto now = parts.model->parameters();
    for (const auto& buffer : parts.model->buffers()) now.push_back(buffer);
    for (size_t i = 0; i < now.size(); ++i) {
      if (average.size() <= i) {
        average.push_back(now[i].detach().clone());
      } else if (now[i].is_floating_point()) {
        average[i] = decay * average[i] + (1 - decay) * now[i].detach();
      }
    }
  }
  const auto parts = prepare_run(settings);
  load_weights(*parts.model, (path / "ema.pt").string());
  auto found = parts.model->parameters();
  for (const auto& buffer : parts.model->buffers()) found.push_back(buffer);
  for (size_t i = 0; i < found.size(); ++i) {
    const bool counted = !found[i].is_floating_point();
    EXPECT_TRUE(counted || torch::allclose(found[i], average[i], 1e-5, 1e-6)) << i;
  }
  const auto end = records::read_log(path / "log.jsonl").back();
  data::Loader loader(*parts.data.test, test_loader_options(parts.settings, *parts.data.test));
  EXPECT_EQ(evaluate(*parts.model, loader, torch::kCPU).top1, end.at("ema_test_top1").get<double>());
}

TEST_F(TrainerTest, AnAverageOfMoreImagesThanThereAreIsACopy) {
  auto settings = small("sgdm");
  settings.batch_size = settings.accumulate = settings.model_ema_steps = 1'000'000'000'000;
  EXPECT_EQ(update_decay(settings), 0);
}

TEST_F(TrainerTest, AnAverageChangesNothingElse) {
  auto settings = small("sgd-ph");
  const auto plain = train(settings, "plain");
  settings.model_ema = true;
  EXPECT_EQ(train(settings, "averaged"), plain);
}

class EveryNorm : public TrainerTest, public testing::WithParamInterface<std::string> {};

TEST_P(EveryNorm, TrainsInBfloat16) {
  for (const auto* kernels : {"fast", "stock"}) {
    auto settings = small("sgdm");
    settings.norm = GetParam();
    settings.kernels = kernels;
    settings.epochs = 1;
    settings.amp = "bf16";
    settings.optimizer["lr"] = 0.01;
    ASSERT_EQ(refusal(settings), "");
    train(settings, kernels);
  }
}

TEST_P(EveryNorm, TrainsInBfloat16WithCurvature) {
  for (const auto* kernels : {"fast", "stock"}) {
    auto settings = small("sgd-ph");
    settings.norm = GetParam();
    settings.kernels = kernels;
    settings.epochs = 1;
    settings.amp = "bf16";
    settings.optimizer["lr"] = 0.01;
    if (const auto why = refusal(settings); !why.empty()) GTEST_SKIP() << why;
    train(settings, kernels);
  }
}

INSTANTIATE_TEST_SUITE_P(Lab, EveryNorm, testing::ValuesIn(models::norm_names()), [](const auto& info) {
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

TEST_F(TrainerTest, AnAccumulatedRunIsThatOfOneLargeBatch) {
  for (const std::string optimizer : {"sgd-ph", "adahessian"}) {
    auto settings = small(optimizer);
    settings.epochs = 2;
    settings.norm = "group";
    settings.augment = false;
    settings.clip_grad_norm = 0.5;
    settings.optimizer["lr"] = 0.01;
    const auto moved = [&](int64_t batch_size, int64_t accumulate) {
      settings.batch_size = batch_size;
      settings.accumulate = accumulate;
      const auto name = fmt::format("{} {}x{}", optimizer, accumulate, batch_size);
      train(settings, name);
      auto parts = prepare_run(settings);
      std::vector<at::Tensor> before, way;
      for (const auto& parameter : parts.model->parameters()) before.push_back(parameter.detach().clone().flatten());
      load_weights(*parts.model, (folder_.path() / name / "model.pt").string());
      for (const auto& parameter : parts.model->parameters()) way.push_back(parameter.detach().flatten());
      return torch::cat(way) - torch::cat(before);
    };
    const auto whole = moved(32, 1);
    const auto difference = [&](const at::Tensor& other) {
      return ((other - whole).norm() / whole.norm()).item<double>();
    };
    EXPECT_GT(whole.norm().item<double>(), 1e-3);
    EXPECT_LT(difference(moved(8, 4)), 1e-2) << optimizer;
    EXPECT_GT(difference(moved(8, 1)), 0.1) << optimizer << ": the test sees nothing";
  }
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
      // Decays of groups follow that of the rest in the same way.
      const std::set<std::string> follow{"init_lr", "norm_weight_decay", "bias_weight_decay"};
      EXPECT_EQ(field.is_set(), follow.count(field.key) == 0) << settings.opt << " " << field.key;
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
