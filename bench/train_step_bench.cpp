// Seconds per training step of ResNet18 (CIFAR form) with SGDM: the lab's trainer, data loading and augmentation
// included, against a bare LibTorch loop and the same loop in Python, both over tensors in memory. Interleaved;
// medians.
//   sgdph_train_step_bench PYTHON train_step.py [rounds] [steps] [batch]

#include "base/clock.h"
#include "base/machine.h"
#include "models/image_model.h"
#include "models/models.h"
#include "support/sample_data.h"
#include "support/temp_folder.h"
#include "train/trainer.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using namespace sgdph::lab;

struct Scale {
  int64_t rounds = 7;
  int64_t steps = 4;
  int64_t batch = 64;
};

double lab_seconds(const fs::path& folder, const Scale& scale) {
  settings::Settings settings;
  settings.dataset = "cifar10";
  settings.data_path = (folder / "data").string();
  settings.model = "resnet18";
  settings.opt = "sgdm";
  settings.optimizer["weight_decay"] = 5e-4;
  settings.batch_size = scale.batch;
  settings.epochs = 2;  // the first one warms up: the other sides keep their network from round to round
  settings.test_limit = 1;
  Progress progress(ProgressStyle::Quiet);
  auto parts = train::prepare_run(settings);
  const auto run = folder / "run";
  fs::remove_all(run);
  const auto resolved = parts.settings;
  train::Trainer trainer(std::move(parts), train::RunFolder::create(run, resolved), progress);
  trainer.run();
  const auto seconds = trainer.log().records().at(2).at("cost").at("train_seconds").get<double>();
  return seconds / static_cast<double>(scale.steps);
}

/// A loop as a LibTorch user would write it.
class Bare {
 public:
  explicit Bare(const Scale& scale) : scale_(scale), images_(torch::randn({8 * scale.batch, 3, 32, 32})) {
    labels_ = torch::randint(10, {8 * scale.batch}, torch::kLong);
    models::ModelOptions options;
    options.name = "resnet18";
    options.kernels = models::Kernels::Stock;
    model_ = models::make_model(options);
    sgd_ = std::make_unique<torch::optim::SGD>(
        model_->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(5e-4));
  }

  double seconds() {
    const double started = seconds_now();
    for (int64_t i = 0; i < scale_.steps; ++i) {
      const auto chosen = torch::randperm(labels_.size(0), torch::kLong).slice(0, 0, scale_.batch);
      sgd_->zero_grad();
      torch::nn::functional::cross_entropy(
          model_->forward(images_.index_select(0, chosen)), labels_.index_select(0, chosen))
          .backward();
      sgd_->step();
    }
    return (seconds_now() - started) / static_cast<double>(scale_.steps);
  }

 private:
  Scale scale_;
  at::Tensor images_;
  at::Tensor labels_;
  std::shared_ptr<models::ImageModel> model_;
  std::unique_ptr<torch::optim::SGD> sgd_;
};

/// The Python loop, in a process that waits between its turns.
class Python {
 public:
  Python(const std::string& program, const std::string& script, const Scale& scale) : scale_(scale) {
    int to[2];
    int from[2];
    if (::pipe(to) != 0 || ::pipe(from) != 0) std::abort();
    if (::fork() == 0) {
      ::dup2(to[0], STDIN_FILENO);
      ::dup2(from[1], STDOUT_FILENO);
      for (const int end : {to[0], to[1], from[0], from[1]}) ::close(end);
      ::execl(
          program.c_str(), program.c_str(), script.c_str(), std::to_string(scale.batch).c_str(),
          std::to_string(core_count()).c_str(), nullptr);
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_.reset(::fdopen(to[1], "w"));
    from_.reset(::fdopen(from[0], "r"));
  }

  double seconds() {
    fmt::print(to_.get(), "{}\n", scale_.steps);
    std::fflush(to_.get());
    double seconds = 0;
    if (std::fscanf(from_.get(), "%lf", &seconds) != 1) {
      fmt::print(stderr, "the Python side gave no answer; are python3-torch and python3-torchvision installed?\n");
      std::exit(1);
    }
    return seconds / static_cast<double>(scale_.steps);
  }

 private:
  Scale scale_;
  std::unique_ptr<FILE, int (*)(FILE*)> to_{nullptr, std::fclose};
  std::unique_ptr<FILE, int (*)(FILE*)> from_{nullptr, std::fclose};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "sgdph_train_step_bench PYTHON train_step.py [rounds] [steps] [batch]\n");
    return 2;
  }
  Scale scale;
  if (argc > 3) scale.rounds = std::atoll(argv[3]);
  if (argc > 4) scale.steps = std::atoll(argv[4]);
  if (argc > 5) scale.batch = std::atoll(argv[5]);
  at::set_num_threads(static_cast<int>(core_count()));
  const sgdph::test::TempFolder folder;
  sgdph::test::write_cifar10(folder / "data", static_cast<int>(scale.steps * scale.batch), 5, 1);

  Python python(argv[1], argv[2], scale);
  Bare bare(scale);
  std::vector<double> lab_times;
  std::vector<double> bare_times;
  std::vector<double> python_times;
  for (int64_t round = -1; round < scale.rounds; ++round) {  // the first warms up
    const double times[] = {lab_seconds(folder.path(), scale), bare.seconds(), python.seconds()};
    if (round < 0) continue;
    lab_times.push_back(times[0]);
    bare_times.push_back(times[1]);
    python_times.push_back(times[2]);
    fmt::print(
        "round {}: sgdph train {:.3f} s, LibTorch {:.3f} s, Python {:.3f} s\n", round + 1, times[0], times[1],
        times[2]);
    std::fflush(stdout);
  }
  std::vector<double> ratios;
  for (size_t i = 0; i < lab_times.size(); ++i)
    ratios.push_back(lab_times[i] / std::min(bare_times[i], python_times[i]));
  fmt::print(
      "seconds per step of batch {}: sgdph train {:.3f}, LibTorch {:.3f}, Python {:.3f}; to the better of each round: "
      "{:.3f} (median)\n",
      scale.batch, median(lab_times), median(bare_times), median(python_times), median(ratios));
  return 0;
}
