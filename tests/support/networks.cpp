#include "support/networks.h"

#include <sgdph/weight_norm.h>

namespace sgdph::test {

namespace nn = torch::nn;

NetAImpl::NetAImpl()
    : conv1(register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 4, 3).padding(1).bias(false)))),
      conv2(nn::Conv2dOptions(4, 6, 3).stride(2).padding(1).bias(false)),
      bn1(register_module("bn1", nn::BatchNorm2d(4))),
      bn2(6),
      fc(6, 5) {
  register_module("conv2", conv2);
  register_module("bn2", bn2);
  register_module("fc", fc);
  to(torch::kFloat64);
}

at::Tensor NetAImpl::forward(at::Tensor x) {
  x = torch::relu(bn1(conv1(x)));
  x = torch::relu(bn2(conv2(x)));
  return fc(x.mean(std::vector<int64_t>{2, 3}));
}

FusedNetAImpl::FusedNetAImpl()
    : conv1(register_module("conv1", sgdph::nn::Conv2d(nn::Conv2dOptions(1, 4, 3).padding(1).bias(false)))),
      conv2(nn::Conv2dOptions(4, 6, 3).stride(2).padding(1).bias(false)),
      bn1(register_module("bn1", sgdph::nn::BatchNormReLU2d(4))),
      bn2(6),
      fc(6, 5) {
  register_module("conv2", conv2);
  register_module("bn2", bn2);
  register_module("fc", fc);
  to(torch::kFloat64);
}

at::Tensor FusedNetAImpl::forward(at::Tensor x) {
  x = bn1(conv1(x));
  x = bn2(conv2(x));
  return fc(x.mean(std::vector<int64_t>{2, 3}));
}

const std::vector<std::string> kProblemKinds{"BatchNorm",    "LayerNorm",  "GroupNorm",
                                             "InstanceNorm", "WeightNorm", "ConvBias"};

namespace {

nn::Functional tanh() {
  return nn::Functional([](const at::Tensor& x) { return torch::tanh(x); });
}

nn::Functional spatial_mean() {
  return nn::Functional([](const at::Tensor& x) { return x.mean(std::vector<int64_t>{2, 3}); });
}

nn::Conv2d conv(int64_t in, int64_t out, bool bias = false) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1).bias(bias));
}

}  // namespace

Problem make_problem(const std::string& kind, torch::Dtype dtype) {
  torch::manual_seed(7);
  Problem problem;
  auto& model = problem.model;
  if (kind == "BatchNorm") {
    model = nn::Sequential(
        conv(2, 5), nn::BatchNorm2d(5), tanh(), conv(5, 3), nn::BatchNorm2d(3), tanh(), spatial_mean(),
        nn::Linear(3, 4));
  } else if (kind == "LayerNorm") {
    model = nn::Sequential(
        nn::Flatten(), nn::Linear(32, 7), nn::LayerNorm(nn::LayerNormOptions({7})), tanh(), nn::Linear(7, 4));
  } else if (kind == "GroupNorm") {
    model = nn::Sequential(
        conv(2, 6), nn::GroupNorm(nn::GroupNormOptions(3, 6)), tanh(), conv(6, 3),
        nn::GroupNorm(nn::GroupNormOptions(1, 3)), tanh(), spatial_mean(), nn::Linear(3, 4));
  } else if (kind == "InstanceNorm") {
    model = nn::Sequential(
        conv(2, 5), nn::InstanceNorm2d(nn::InstanceNorm2dOptions(5).affine(true)), tanh(), conv(5, 3), tanh(),
        spatial_mean(), nn::Linear(3, 4));
  } else if (kind == "WeightNorm") {
    model = nn::Sequential(
        WeightNormConv2d(conv(2, 5, true)), tanh(), WeightNormConv2d(conv(5, 3)), tanh(), spatial_mean(),
        WeightNormLinear(3, 4));
  } else if (kind == "ConvBias") {
    model = nn::Sequential(conv(2, 5, true), tanh(), conv(5, 3, true), tanh(), spatial_mean(), nn::Linear(3, 4));
  } else {
    TORCH_CHECK(false, "no test problem is called ", kind);
  }
  model->to(dtype);
  torch::NoGradGuard no_grad;
  // Away from gain 1 and shift 0, where derivatives may happen to vanish.
  for (auto& parameter : model->parameters()) {
    if (parameter.dim() == 1) parameter.add_(torch::randn_like(parameter), 0.3);
  }
  problem.inputs = torch::randn({6, 2, 4, 4}, dtype);
  problem.labels = torch::randint(4, {6}, torch::kLong);
  return problem;
}

at::Tensor brute_force_hessian(const at::Tensor& loss, const std::vector<at::Tensor>& parameters) {
  const auto flat = [&](const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> parts;
    for (size_t i = 0; i < parameters.size(); ++i) {
      parts.push_back((tensors[i].defined() ? tensors[i] : torch::zeros_like(parameters[i])).flatten());
    }
    return torch::cat(parts);
  };
  const auto gradient = flat(torch::autograd::grad({loss}, parameters, {}, true, true));
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < gradient.numel(); ++i) {
    rows.push_back(flat(torch::autograd::grad({gradient[i]}, parameters, {}, true, false, true)));
  }
  return torch::stack(rows);
}

}  // namespace sgdph::test
