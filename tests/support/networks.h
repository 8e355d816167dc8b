#pragma once

#include <sgdph/nn.h>

#include <torch/torch.h>

#include <functional>
#include <map>
#include <string>

namespace sgdph::test {

/// The network of the golden problem: two convolutions with BatchNorm, a linear layer.
struct NetAImpl : torch::nn::Module {
  NetAImpl();
  at::Tensor forward(at::Tensor x);
  torch::nn::Conv2d conv1, conv2;
  torch::nn::BatchNorm2d bn1, bn2;
  torch::nn::Linear fc;
};
TORCH_MODULE(NetA);

/// The same of our layers, with the same names.
struct FusedNetAImpl : torch::nn::Module {
  FusedNetAImpl();
  at::Tensor forward(at::Tensor x);
  sgdph::nn::Conv2d conv1, conv2;
  sgdph::nn::BatchNormReLU2d bn1, bn2;
  torch::nn::Linear fc;
};
TORCH_MODULE(FusedNetA);

/// A small smooth float64 classifier with a fixed batch, seeded.
struct Problem {
  torch::nn::Sequential model;
  at::Tensor inputs;
  at::Tensor labels;

  at::Tensor loss() { return torch::nn::functional::cross_entropy(model->forward(inputs), labels); }
};

/// One problem for each kind of block: "BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "WeightNorm",
/// "ConvBias". Channel counts are not powers of two.
Problem make_problem(const std::string& kind, torch::Dtype dtype = torch::kFloat64);
extern const std::vector<std::string> kProblemKinds;

/// The Hessian of the loss for these parameters together, row by row.
at::Tensor brute_force_hessian(const at::Tensor& loss, const std::vector<at::Tensor>& parameters);

}  // namespace sgdph::test
