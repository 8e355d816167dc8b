#pragma once

#include <sgdph/classifier.h>

#include <memory>
#include <string>
#include <vector>

namespace torch {
template <typename Key, typename Value>
class OrderedDict;
}

namespace sgdph::sgd_ph {

/// A parameter with a name, whether it is a block, and why.
struct ClassifiedParameter {
  std::string name;
  std::string local_name;
  at::Tensor parameter;
  /// What holds it; empty if that is not known, or is owned by no shared pointer and so may go unnoticed.
  std::weak_ptr<const torch::nn::Module> module;
  bool block = false;
  std::string kind;
};

/// Whether the module is a norm layer, by its type or its type's name, and this its gain or shift.
bool is_norm_parameter(const torch::nn::Module& module, const std::string& local_name);

/// All parameters of a module, each once, in the order of `named_parameters()`. The classifier (which may be null) has
/// the first word, then the type of the module that holds the parameter: gain and shift of a norm layer, the gain of a
/// weight-normalised layer and a convolution's bias are blocks if they are channel-wise. So are weight and bias, gamma
/// and beta, gain and scale of a type that is named like a norm.
std::vector<ClassifiedParameter> classify_parameters(
    const torch::nn::Module& module, const Classifier& classifier = {});

/// The same of tensors with names alone, of a TorchScript module say. The classifier decides: what it leaves open is
/// first-order; without one, the 1-D parameters are blocks, as published.
std::vector<ClassifiedParameter> classify_parameters(
    const torch::OrderedDict<std::string, at::Tensor>& named, const Classifier& classifier);

}  // namespace sgdph::sgd_ph
