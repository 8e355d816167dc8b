// Our layers' kernels beside LibTorch's operators, at the shapes of a ResNet18 (CIFAR form, batch 32): forward,
// backward, and the double backward a product of curvature needs. Each pair has the same name but for its last word.

#include <sgdph/nn/functional.h>

#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <functional>
#include <string>

namespace {

using torch::autograd::grad;
using Tensors = std::vector<at::Tensor>;
using Layer = std::function<at::Tensor(const Tensors&)>;

struct Shape {
  int64_t channels, side;
};
constexpr Shape kShapes[] = {{64, 32}, {128, 16}, {512, 4}};
constexpr int64_t kBatch = 32;

struct Case {
  std::string name;
  Tensors inputs;  ///< the image first
  Layer layer;
};

at::Tensor leaf(at::IntArrayRef sizes) {
  const auto values = torch::randn(sizes);
  return (sizes.size() == 4 ? values.contiguous(at::MemoryFormat::ChannelsLast) : values).requires_grad_(true);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [channels, side] : kShapes) {
    const auto size = "/" + std::to_string(channels) + "x" + std::to_string(side);
    const Tensors convolution{leaf({kBatch, channels, side, side}), leaf({channels, channels, 3, 3})};
    all.push_back({"conv" + size + "/ours", convolution, [](const Tensors& t) {
                     sgdph::nn::functional::Conv2dOptions options;
                     options.padding = {1, 1};
                     return sgdph::nn::functional::conv2d(t[0], t[1], {}, options);
                   }});
    all.push_back({"conv" + size + "/stock", convolution, [](const Tensors& t) {
                     return at::conv2d(t[0], t[1], {}, /*stride=*/1, /*padding=*/1);
                   }});
    const Tensors norm{leaf({kBatch, channels, side, side}), leaf({channels}), leaf({channels})};
    all.push_back({"batch_norm_relu" + size + "/ours", norm, [](const Tensors& t) {
                     sgdph::nn::functional::BatchNormOptions options;
                     options.training = true;
                     options.relu = true;
                     return sgdph::nn::functional::batch_norm(t[0], {}, t[1], t[2], {}, {}, options);
                   }});
    all.push_back({"batch_norm_relu" + size + "/stock", norm, [](const Tensors& t) {
                     return at::batch_norm(t[0], t[1], t[2], {}, {}, true, 0.1, 1e-5, false).relu();
                   }});
  }
  return all;
}

void run_forward(benchmark::State& state, const Case& c) {
  const torch::NoGradGuard no_grad;
  for (auto _ : state) benchmark::DoNotOptimize(c.layer(c.inputs));
}

void run_backward(benchmark::State& state, const Case& c) {
  const auto y = c.layer(c.inputs);
  const auto gradient = torch::randn_like(y);
  for (auto _ : state) benchmark::DoNotOptimize(grad({y}, c.inputs, {gradient}, /*retain_graph=*/true));
}

/// What a product of an earlier block asks of the layer: how the image's gradient depends on the incoming gradient and,
/// for batch norm, on the image.
void run_double_backward(benchmark::State& state, const Case& c) {
  const auto y = c.layer(c.inputs);
  const auto gradient = torch::randn_like(y).requires_grad_(true);
  const auto first = grad({y}, {c.inputs[0]}, {gradient}, true, /*create_graph=*/true);
  const auto v = torch::randn_like(first[0]);
  const bool norm = c.inputs.size() == 3;
  const Tensors wanted = norm ? Tensors{gradient, c.inputs[0]} : Tensors{gradient};
  for (auto _ : state) benchmark::DoNotOptimize(grad(first, wanted, {v}, /*retain_graph=*/true));
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const auto all = cases();
  const std::pair<std::string, void (*)(benchmark::State&, const Case&)> passes[] = {
      {"forward/", run_forward}, {"backward/", run_backward}, {"double_backward/", run_double_backward}};
  for (const auto& [name, run] : passes) {
    for (const auto& c : all) {
      benchmark::RegisterBenchmark((name + c.name).c_str(), run, c)->Unit(benchmark::kMillisecond)->UseRealTime();
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
