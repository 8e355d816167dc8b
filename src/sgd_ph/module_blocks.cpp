#include "sgd_ph/module_blocks.h"

#include <sgdph/nn/modules.h>
#include <sgdph/weight_norm.h>

// instancenorm.h of LibTorch 1.13 does not include what it needs.
#include <torch/nn/functional/instancenorm.h>

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/ordered_dict.h>

#include <cctype>
#include <unordered_set>
#include <utility>

namespace sgdph::sgd_ph {
namespace {

template <class... Types>
bool is_any(const torch::nn::Module& module) {
  return ((dynamic_cast<const Types*>(&module) != nullptr) || ...);
}

bool is_norm(const torch::nn::Module& module) {
  return is_any<
      torch::nn::BatchNorm1dImpl, torch::nn::BatchNorm2dImpl, torch::nn::BatchNorm3dImpl, torch::nn::InstanceNorm1dImpl,
      torch::nn::InstanceNorm2dImpl, torch::nn::InstanceNorm3dImpl, torch::nn::GroupNormImpl, torch::nn::LayerNormImpl,
      sgdph::nn::BatchNorm2dImpl, sgdph::nn::BatchNormReLU2dImpl>(module);
}

bool is_convolution(const torch::nn::Module& module) {
  return is_any<
      torch::nn::Conv1dImpl, torch::nn::Conv2dImpl, torch::nn::Conv3dImpl, torch::nn::ConvTranspose1dImpl,
      torch::nn::ConvTranspose2dImpl, torch::nn::ConvTranspose3dImpl, WeightNormConv2dImpl>(module);
}

bool is_linear(const torch::nn::Module& module) {
  return is_any<torch::nn::LinearImpl, torch::nn::BilinearImpl, WeightNormLinearImpl>(module);
}

/// The last word of a type's name, without namespaces, template arguments and "Impl".
std::string type_word(const torch::nn::Module& module) {
  std::string word;
  int depth = 0;
  for (const auto letter : module.name()) {
    if (letter == '<') ++depth;
    if (depth == 0) word += letter;
    if (letter == '>') --depth;
  }
  if (const auto colons = word.rfind("::"); colons != std::string::npos) word = word.substr(colons + 2);
  const std::string impl = "Impl";
  if (word.size() > impl.size() && word.compare(word.size() - impl.size(), impl.size(), impl) == 0) {
    word.resize(word.size() - impl.size());
  }
  return word;
}

/// RMSNorm, norm_2, BatchNormalization; but neither Normal nor Normaliser.
bool is_named_like_norm(const torch::nn::Module& module) {
  const auto word = type_word(module);
  for (const auto* stem : {"Norm", "norm"}) {
    for (auto place = word.find(stem); place != std::string::npos; place = word.find(stem, place + 1)) {
      const auto rest = word.substr(place + 4);
      if (rest.empty() || std::islower(static_cast<unsigned char>(rest[0])) == 0) return true;
      if (rest.compare(0, 8, "alizatio") == 0 || rest.compare(0, 8, "alisatio") == 0) return true;
    }
  }
  return false;
}

bool is_gain_or_shift(const std::string& name) {
  static const std::unordered_set<std::string> names{"weight", "bias", "gamma", "beta", "scale", "shift", "gain"};
  return names.count(name) != 0;
}

bool is_shift(const std::string& name) {
  return name == "bias" || name == "beta" || name == "shift";
}

struct Verdict {
  std::string kind;
  bool block = false;
};

/// What a parameter of this module is, and whether that makes it a block.
Verdict classify(const torch::nn::Module& module, const std::string& name, const at::Tensor& parameter) {
  const auto dimensions = std::to_string(parameter.dim()) + "-D";
  if (!is_channel_wise(parameter)) return {dimensions, false};
  const std::string norm = is_shift(name) ? "norm shift" : "norm gain";
  if (is_norm(module)) return {norm, true};
  if (is_any<WeightNormConv2dImpl, WeightNormLinearImpl>(module) && name == "gain") return {"weight-norm gain", true};
  if (is_convolution(module) && name == "bias") return {"convolution bias", true};
  if (is_linear(module) && name == "bias") return {"linear bias", false};
  if (is_convolution(module) || is_linear(module)) return {dimensions, false};
  if (is_named_like_norm(module) && is_gain_or_shift(name)) return {norm + ", by its type's name", true};
  return {dimensions + ", of a module type without channels (" + type_word(module) + ")", false};
}

/// Makes an entry of a parameter the first time it is met, once the classifier has been asked.
class Collector {
 public:
  explicit Collector(const Classifier& classifier) : classifier_(classifier) {}

  void add(ParameterInfo info, std::weak_ptr<const torch::nn::Module> module, Verdict verdict) {
    if (!seen_.insert(info.parameter.unsafeGetTensorImpl()).second) return;
    if (info.parameter.is_complex()) verdict = {"complex", false};
    info.role = verdict.block ? Role::Block : Role::FirstOrder;
    const auto role = classifier_ ? classifier_(info) : Role::Default;
    if (role != Role::Default) {
      decided_ = true;
      TORCH_CHECK(
          role == Role::FirstOrder || !info.parameter.is_complex(), "SGDPH: the classifier makes ", info.name,
          " a block, which is complex; the curvature of real parameters alone is measured");
      verdict.block = role == Role::Block;
      verdict.kind += verdict.block ? ", a block by the classifier" : ", first-order by the classifier";
    }
    found_.push_back(
        {std::move(info.name), std::move(info.local_name), std::move(info.parameter), std::move(module), verdict.block,
         std::move(verdict.kind)});
  }

  void add_all(const torch::nn::Module& module, const std::string& prefix) {
    const auto weak = module.weak_from_this();
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
      add({prefix + item.key(), item.value(), &module, item.key()}, weak, classify(module, item.key(), item.value()));
    }
    for (const auto& child : module.named_children()) add_all(*child.value(), prefix + child.key() + ".");
  }

  std::vector<ClassifiedParameter> take() {
    if (classifier_ && !decided_ && !found_.empty()) {
      TORCH_WARN(
          "SGDPH: the classifier decides about none of the ", found_.size(), " parameters, the first of which is ",
          found_.front().name);
    }
    return std::move(found_);
  }

 private:
  const Classifier& classifier_;
  bool decided_ = false;
  std::unordered_set<const at::TensorImpl*> seen_;
  std::vector<ClassifiedParameter> found_;
};

}  // namespace

bool is_norm_parameter(const torch::nn::Module& module, const std::string& local_name) {
  if (is_norm(module)) return true;
  return is_named_like_norm(module) && is_gain_or_shift(local_name) &&
         !is_any<WeightNormConv2dImpl, WeightNormLinearImpl>(module);
}

std::vector<ClassifiedParameter> classify_parameters(const torch::nn::Module& module, const Classifier& classifier) {
  Collector collector(classifier);
  collector.add_all(module, "");
  return collector.take();
}

std::vector<ClassifiedParameter> classify_parameters(
    const torch::OrderedDict<std::string, at::Tensor>& named, const Classifier& classifier) {
  Collector collector(classifier);
  for (const auto& item : named) {
    TORCH_CHECK(item.value().defined(), "SGDPH: the parameter ", item.key(), " is undefined; leave it out");
    const auto local_name = item.key().substr(item.key().rfind('.') + 1);
    const bool published = !classifier && item.value().dim() == 1;
    collector.add(
        {item.key(), item.value(), nullptr, local_name}, {}, {std::to_string(item.value().dim()) + "-D", published});
  }
  return collector.take();
}

}  // namespace sgdph::sgd_ph
