// A step of several ranks: gradients sent after backward, or in buckets while backward and the Hessian product are
// under way. Started once for each rank, by bench/ranks.sh on two hosts with a slow link between them; rank 0 prints.

#include "base/clock.h"
#include "base/terminal.h"
#include "dist/gradient_buckets.h"
#include "dist/group.h"
#include "optimizers/training_optimizer.h"

#include <sgdph/curvature_optimizer.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace sgdph::lab;

constexpr int64_t kWidth = 512, kLayers = 8, kBatch = 256, kSteps = 24, kWarmUp = 4;

torch::nn::Sequential make_network() {
  torch::nn::Sequential network;
  for (int64_t i = 0; i < kLayers; ++i) {
    network->push_back(torch::nn::Linear(torch::nn::LinearOptions(kWidth, kWidth).bias(false)));
    network->push_back(torch::nn::BatchNorm1d(kWidth));
    network->push_back(torch::nn::ReLU());
  }
  network->push_back(torch::nn::Linear(kWidth, 10));
  return network;
}

std::string cell(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return fmt::format("{:.0f} ({:.0f})", 1000 * times[times.size() / 2], 1000 * times.front());
}

void measure(dist::Group& group) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  auto network = make_network();
  const auto optimizer =
      optimizers::make_optimizer(*network, "sgd-ph", optimizers::resolve_optimizer("sgd-ph", {{"lr", 0.01}}), 1);
  optimizer->share_with_ranks(group.rank(), group.size(), [&](at::Tensor& tensor) { group.sum(tensor); });
  auto& curvature = dynamic_cast<sgdph::CurvatureOptimizer&>(optimizer->base());
  dist::GradientBuckets buckets(network->parameters(), group, 1 << 20);
  torch::manual_seed(static_cast<uint64_t>(10 + group.rank()));
  const auto images = torch::randn({kBatch, kWidth});
  const auto labels = torch::randint(10, {kBatch}, torch::kLong);
  // By turns, so that a busy machine does not favour one of them.
  std::map<std::pair<bool, bool>, std::vector<double>> times;
  for (int64_t step = 0; step < 4 * kSteps; ++step) {
    const bool early = step % 2 == 0;
    const bool product = step / 2 % 2 == 0;
    const double started = seconds_now();
    for (auto& parameter : network->parameters()) parameter.mutable_grad().reset();
    if (early) buckets.arm();
    const auto loss = torch::nn::functional::cross_entropy(network->forward(images), labels) / group.size();
    curvature.backward(loss, sgdph::BackwardOptions().measure(product));
    buckets.finish();
    optimizer->step();
    if (step >= 4 * kWarmUp) times[{product, early}].push_back(seconds_now() - started);
  }
  if (!group.is_first()) return;
  print(
      "| ms a step, median (least) of {} | all-reduce after backward | own buckets |\n|---|---|---|\n",
      kSteps - kWarmUp);
  for (const bool product : {false, true}) {
    print(
        "| {} | {} | {} |\n", product ? "with a product" : "first-order", cell(times[{product, false}]),
        cell(times[{product, true}]));
  }
}

}  // namespace

int main() {
  dist::Group group(dist::environment(), {});
  group.connect();
  dist::guarded(group, [&] { measure(group); });
}
