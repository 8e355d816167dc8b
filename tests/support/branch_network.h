#pragma once

#include <sgdph/nn.h>
#include <sgdph/weight_norm.h>

#include <torch/torch.h>

#include <type_traits>

namespace sgdph::test {

/// A small residual network: two branches each in two blocks, a weight-normalised convolution in one of them, a
/// convolution used twice behind them, and a linear layer. `kFused`: of our layers, else of LibTorch's; seeded alike,
/// they are the same function. In float64.
template <bool kFused>
struct BranchNetworkImpl : torch::nn::Module {
  using Conv = std::conditional_t<kFused, sgdph::nn::Conv2d, torch::nn::Conv2d>;
  using Norm = std::conditional_t<kFused, sgdph::nn::BatchNorm2d, torch::nn::BatchNorm2d>;
  using NormRelu = std::conditional_t<kFused, sgdph::nn::BatchNormReLU2d, torch::nn::BatchNorm2d>;

  static torch::nn::Conv2dOptions options(int64_t in, int64_t out, int64_t kernel = 3, int64_t stride = 1) {
    return torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false);
  }

  BranchNetworkImpl()
      : conv1(options(2, 5)),
        conv2(options(5, 4)),
        conv3(options(4, 5)),
        conv4(options(5, 3, 3, 2)),
        shortcut(options(5, 6, 1, 2)),
        twice(options(6, 6).groups(2).bias(true)),
        normed(options(3, 6)),
        bn1(5),
        bn2(4),
        bn3(5),
        bn4(3),
        bn5(6),
        bn_shortcut(6),
        fc(6, 4) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
    register_module("conv3", conv3);
    register_module("bn3", bn3);
    register_module("conv4", conv4);
    register_module("bn4", bn4);
    register_module("normed", normed);
    register_module("bn5", bn5);
    register_module("shortcut", shortcut);
    register_module("bn_shortcut", bn_shortcut);
    register_module("twice", twice);
    register_module("fc", fc);
    to(torch::kFloat64);
    torch::NoGradGuard no_grad;
    for (auto& parameter : parameters()) {
      if (parameter.dim() == 1) parameter.add_(torch::randn_like(parameter), 0.3);
    }
  }

  static at::Tensor rectified(NormRelu& norm, const at::Tensor& x, const at::Tensor& residual = {}) {
    if constexpr (kFused) {
      return norm->forward(x, residual);
    } else {
      const auto y = norm->forward(x);
      return (residual.defined() ? y + residual : y).relu();
    }
  }

  at::Tensor forward(at::Tensor x) {
    x = rectified(bn1, conv1->forward(x));
    x = rectified(bn3, conv3->forward(rectified(bn2, conv2->forward(x))), x);
    middle = x;
    const auto side = bn_shortcut->forward(shortcut->forward(x));
    x = rectified(bn5, normed->forward(rectified(bn4, conv4->forward(x))), side);
    x = twice->forward(x).tanh();
    x = x + twice->forward(x).tanh();
    return fc->forward(x.mean(std::vector<int64_t>{2, 3}));
  }

  Conv conv1, conv2, conv3, conv4, shortcut, twice;
  WeightNormConv2d normed;
  NormRelu bn1, bn2, bn3, bn4, bn5;
  Norm bn_shortcut;
  torch::nn::Linear fc;
  at::Tensor middle;  ///< of the last pass, between the blocks
};

/// A network with a fixed batch, seeded.
template <bool kFused>
struct BranchProblem {
  std::shared_ptr<BranchNetworkImpl<kFused>> model;
  at::Tensor inputs, labels;

  explicit BranchProblem(bool channels_last = false) {
    torch::manual_seed(101);
    model = std::make_shared<BranchNetworkImpl<kFused>>();
    inputs = torch::randn({3, 2, 6, 5}, torch::kFloat64);
    if (channels_last) inputs = inputs.contiguous(at::MemoryFormat::ChannelsLast);
    labels = torch::randint(4, {3}, torch::kLong);
  }
  at::Tensor loss() { return torch::nn::functional::cross_entropy(model->forward(inputs), labels); }
};

}  // namespace sgdph::test
