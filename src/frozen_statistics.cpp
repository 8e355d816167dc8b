#include <sgdph/frozen_statistics.h>

#include <sgdph/nn/modules.h>

// instancenorm.h of LibTorch 1.13 does not include what it needs.
#include <torch/nn/functional/instancenorm.h>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/instancenorm.h>

namespace sgdph {
namespace {

/// Takes the running statistics of one layer away, if it is a `Layer` that updates them; they stay among the module's
/// buffers.
template <class Layer>
void freeze(torch::nn::Module& module, std::vector<std::function<void()>>& restore) {
  auto* layer = dynamic_cast<Layer*>(&module);
  if (layer == nullptr || !layer->is_training() || !layer->options.track_running_stats()) return;
  restore.push_back([layer, mean = layer->running_mean, variance = layer->running_var] {
    layer->running_mean = mean;
    layer->running_var = variance;
    layer->options.track_running_stats(true);
  });
  layer->running_mean.reset();
  layer->running_var.reset();
  layer->options.track_running_stats(false);
}

}  // namespace

FrozenStatistics::FrozenStatistics(torch::nn::Module& module) {
  module.apply([this](torch::nn::Module& layer) {
    freeze<torch::nn::BatchNorm1dImpl>(layer, restore_);
    freeze<torch::nn::BatchNorm2dImpl>(layer, restore_);
    freeze<torch::nn::BatchNorm3dImpl>(layer, restore_);
    freeze<sgdph::nn::BatchNorm2dImpl>(layer, restore_);
    freeze<sgdph::nn::BatchNormReLU2dImpl>(layer, restore_);
    freeze<torch::nn::InstanceNorm1dImpl>(layer, restore_);
    freeze<torch::nn::InstanceNorm2dImpl>(layer, restore_);
    freeze<torch::nn::InstanceNorm3dImpl>(layer, restore_);
  });
}

FrozenStatistics::~FrozenStatistics() {
  for (const auto& restore : restore_) restore();
}

}  // namespace sgdph
