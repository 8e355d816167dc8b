#include "train/weights.h"

#include "models/state_dict.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace sgdph::lab::train {
namespace {

std::vector<at::Tensor> tensors_of(models::ImageModel& model) {
  auto tensors = model.parameters();
  const auto buffers = model.buffers();
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  return tensors;
}

std::vector<at::Tensor> copies(models::ImageModel& model) {
  std::vector<at::Tensor> values;
  for (const auto& tensor : tensors_of(model)) values.push_back(tensor.detach().clone());
  return values;
}

void put_into(models::ImageModel& model, const std::vector<at::Tensor>& values) {
  const at::NoGradGuard no_gradients;
  const auto tensors = tensors_of(model);
  for (size_t i = 0; i < values.size(); ++i) tensors[i].copy_(values[i]);
}

}  // namespace

KeptWeights::KeptWeights(models::ImageModel& model) : model_(model), values_(copies(model)) {}

KeptWeights::~KeptWeights() {
  put_into(model_, values_);
}

double update_decay(const settings::Settings& s) {
  double images = 1;  // of all ranks between two updates
  for (const auto factor : {s.ranks, s.batch_size, s.accumulate, s.model_ema_steps})
    images *= static_cast<double>(factor);
  return 1 - std::min(1., (1 - s.model_ema_decay) * images / static_cast<double>(s.epochs));
}

AveragedWeights::AveragedWeights(models::ImageModel& model, double decay)
    : model_(model), decay_(decay), averages_(copies(model)) {}

void AveragedWeights::update() {
  const at::NoGradGuard no_gradients;
  const auto tensors = tensors_of(model_);
  for (size_t i = 0; i < averages_.size(); ++i) {
    if (updates_ == 0 || !averages_[i].is_floating_point()) {
      averages_[i].copy_(tensors[i]);
    } else {
      averages_[i].mul_(decay_).add_(tensors[i], 1 - decay_);
    }
  }
  ++updates_;
}

void AveragedWeights::put_into_model() const {
  put_into(model_, averages_);
}

std::string AveragedWeights::save() const {
  const KeptWeights kept(model_);
  put_into_model();
  return models::save_state_dict(model_);
}

void AveragedWeights::load(const std::string& state_dict, int64_t updates, const std::string& where) {
  const KeptWeights kept(model_);
  models::load_state_dict(model_, state_dict, where);
  averages_ = copies(model_);
  updates_ = updates;
}

}  // namespace sgdph::lab::train
