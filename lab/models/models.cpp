#include "models/models.h"

#include "base/error.h"
#include "base/names.h"
#include "models/resnet.h"
#include "models/vgg.h"

#include <sgdph/nn/modules.h>

#include <functional>
#include <utility>

namespace sgdph::lab::models {
namespace {

using Builder = std::function<std::shared_ptr<ImageModel>(const ModelOptions&)>;

struct Entry : ModelInfo {
  Builder build;
};

template <class Model, class Shape>
Builder builder(Shape (*shape)()) {
  return [shape](const ModelOptions& options) { return std::make_shared<Model>(shape(), options); };
}

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries = {
      {{"vgg11", "VGG11, 8 convolutions"}, builder<VGG>(VGG::vgg11)},
      {{"vgg19", "VGG19, 16 convolutions"}, builder<VGG>(VGG::vgg19)},
      {{"resnet18", "ResNet18, basic blocks"}, builder<ResNet>(ResNet::resnet18)},
      {{"resnet50", "ResNet50, bottleneck blocks"}, builder<ResNet>(ResNet::resnet50)},
      {{"resnet20", "ResNet20 of He et al. for CIFAR, 16-64 channels", true}, builder<ResNet>(ResNet::resnet20)},
      {{"resnet8", "thin ResNet8 for CPUs, 8-32 channels", true}, builder<ResNet>(ResNet::resnet8)},
  };
  return entries;
}

const std::vector<std::pair<std::string, Norm>>& norms() {
  static const std::vector<std::pair<std::string, Norm>> entries = {
      {"batch", Norm::Batch},       {"layer", Norm::Layer}, {"group", Norm::Group},
      {"instance", Norm::Instance}, {"none", Norm::None},   {"weight", Norm::Weight},
  };
  return entries;
}

constexpr double kMaxWidth = 16;
constexpr int64_t kMaxCount = 1'000'000;

void check_count(const std::string& model, const char* what, int64_t count) {
  if (count >= 1 && count <= kMaxCount) return;
  fail("model {}: {} {} is out of range; use 1 to {}", model, what, count, kMaxCount);
}

}  // namespace

Norm norm_from_name(const std::string& name) {
  if (name.rfind("sync", 0) == 0) {
    fail(
        "--norm: {} is not offered: synchronised batch norm has no second derivative in PyTorch; use batch, by which "
        "each "
        "rank normalises its own batch, or group or layer, which need no batch",
        name);
  }
  return find_named(norms(), "norm", name).second;
}

std::vector<std::string> norm_names() {
  return names_of(norms());
}

const std::vector<ModelInfo>& model_infos() {
  static const std::vector<ModelInfo> infos(table().begin(), table().end());
  return infos;
}

std::shared_ptr<ImageModel> make_model(const ModelOptions& options) {
  const auto& entry = find_named(table(), "model", options.name);
  // Written so that NaN fails too.
  if (!(options.width > 0 && options.width <= kMaxWidth)) {
    fail("model {}: width {} is out of range; use more than 0, up to {}", options.name, options.width, kMaxWidth);
  }
  check_count(options.name, "number of input channels", options.in_channels);
  check_count(options.name, "number of classes", options.classes);
  if (entry.small && options.form == Form::ImageNet) {
    fail("model {} has the CIFAR form only; use that form, or resnet18 in ImageNet form", options.name);
  }
  auto model = entry.build(options);
  if (options.kernels == Kernels::Fast) sgdph::nn::to_channels_last(*model);
  return model;
}

int64_t count_parameters(const torch::nn::Module& model) {
  int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  return count;
}

}  // namespace sgdph::lab::models
