// Milliseconds of `step()` alone, the gradients being there: torch::optim::SGD and sgdph::SGDPH on the parameters of a
// ResNet50 (25.6 million values), and on many tiny parameters, where what counts is the work around the arithmetic.
// Interleaved; medians, and the median of each round's ratio to torch's SGD, which is to be 0.8 or less for the first.
//   sgdph_optimizer_step_bench [rounds] [threads]

#include <sgdph/sgd_ph.h>

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

using Parameters = std::vector<at::Tensor>;
using Shapes = std::vector<std::vector<int64_t>>;

/// A ResNet50's, in order: kernels without bias, and gain and shift of a norm layer after each.
Shapes resnet50_shapes() {
  Shapes shapes;
  const auto layer = [&](int64_t out, int64_t in, int64_t side) {
    shapes.push_back({out, in, side, side});
    shapes.push_back({out});
    shapes.push_back({out});
  };
  layer(64, 3, 7);
  int64_t in = 64;
  const int64_t counts[] = {3, 4, 6, 3};
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t width = 64 << stage;
    for (int64_t block = 0; block < counts[stage]; ++block) {
      layer(width, in, 1);
      layer(width, width, 3);
      layer(4 * width, width, 1);
      if (block == 0) layer(4 * width, in, 1);
      in = 4 * width;
    }
  }
  shapes.push_back({1000, in});
  shapes.push_back({1000});
  return shapes;
}

Parameters make_parameters(const Shapes& shapes) {
  torch::manual_seed(1);
  Parameters parameters;
  for (const auto& shape : shapes) {
    parameters.push_back((torch::randn(shape) * 0.1).requires_grad_(true));
    parameters.back().mutable_grad() = torch::randn(shape) * 1e-3;
  }
  return parameters;
}

struct Side {
  std::string name;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::vector<double> times;
};

template <class Optimizer, class Options>
Side side(const char* name, const Shapes& shapes, const Options& options) {
  return {name, std::make_unique<Optimizer>(make_parameters(shapes), options), {}};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double milliseconds(const std::function<void()>& action) {
  const auto began = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
}

/// The first side is what the others are compared with.
void compare(const char* title, std::vector<Side> sides, int64_t rounds) {
  for (int64_t round = -3; round < rounds; ++round) {  // the first ones warm up
    for (auto& one : sides) {
      const double time = milliseconds([&] { one.optimizer->step(); });
      if (round >= 0) one.times.push_back(time);
    }
  }
  std::printf("%s\n", title);
  for (const auto& one : sides) {
    std::vector<double> ratios;
    for (size_t i = 0; i < one.times.size(); ++i) ratios.push_back(one.times[i] / sides.front().times[i]);
    std::printf("  %-34s %8.3f ms, %.2f of torch's SGD\n", one.name.c_str(), median(one.times), median(ratios));
  }
  std::fflush(stdout);
}

void compare_on(const char* title, const Shapes& shapes, int64_t rounds) {
  const auto sgd = torch::optim::SGDOptions(0.01).momentum(0.9);
  const auto ours = sgdph::SGDPHOptions(0.01).momentum(0.9).shift_guard(false);
  const auto first_order = sgdph::SGDPHOptions(ours).second_order(false);
  const auto with = [&](double decay) {
    std::vector<Side> sides;
    sides.push_back(side<torch::optim::SGD>("torch SGD", shapes, torch::optim::SGDOptions(sgd).weight_decay(decay)));
    sides.push_back(
        side<sgdph::SGDPH>("SGDPH, all first-order", shapes, sgdph::SGDPHOptions(first_order).weight_decay(decay)));
    sides.push_back(
        side<sgdph::SGDPH>("SGDPH, 1-D blocks second-order", shapes, sgdph::SGDPHOptions(ours).weight_decay(decay)));
    return sides;
  };
  compare((std::string(title) + ", momentum 0.9").c_str(), with(0), rounds);
  compare((std::string(title) + ", momentum 0.9, weight decay 5e-4").c_str(), with(5e-4), rounds);
  std::vector<Side> plain;
  plain.push_back(side<torch::optim::SGD>("torch SGD", shapes, torch::optim::SGDOptions(0.01)));
  plain.push_back(side<sgdph::SGDPH>("SGDPH, all first-order", shapes, sgdph::SGDPHOptions(first_order).momentum(0)));
  compare((std::string(title) + ", momentum 0").c_str(), std::move(plain), rounds);
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t rounds = argc > 1 ? std::atoll(argv[1]) : 41;
  at::set_num_threads(argc > 2 ? std::atoi(argv[2]) : 1);
  compare_on("ResNet50, 25.6 million parameters", resnet50_shapes(), rounds);
  compare_on("2000 matrices of 2 x 2", Shapes(2000, {2, 2}), rounds);
  return 0;
}
