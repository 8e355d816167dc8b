#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/image_model.h"
#include "settings/settings.h"

namespace sgdph::lab::train {

/// Keeps a network's parameters and buffers, and puts them back at its end.
class KeptWeights {
 public:
  explicit KeptWeights(models::ImageModel& model);
  ~KeptWeights();
  KeptWeights(const KeptWeights&) = delete;
  KeptWeights& operator=(const KeptWeights&) = delete;

 private:
  models::ImageModel& model_;
  std::vector<at::Tensor> values_;
};

/// The factor that `--model-ema-decay` comes to for one update, as in torchvision's script: it is meant for an update
/// after each image of an epoch in a run of one epoch.
double update_decay(const settings::Settings& settings);

/// An exponential moving average of a network's parameters and buffers: average = decay * average + (1 - decay) *
/// value. The first update copies, and so do numbers that are whole (counts of batches).
class AveragedWeights {
 public:
  AveragedWeights(models::ImageModel& model, double decay);

  void update();
  /// The next update copies, as the first: averages of a warm-up would weigh down what follows.
  void start_again() { updates_ = 0; }
  /// Into the network, which should be kept before.
  void put_into_model() const;

  // For checkpoints: the averages as a state dict, and how many updates they come from.
  std::string save() const;
  void load(const std::string& state_dict, int64_t updates, const std::string& where);
  int64_t updates() const { return updates_; }

 private:
  models::ImageModel& model_;
  double decay_;
  int64_t updates_ = 0;
  std::vector<at::Tensor> averages_;  ///< of parameters, then of buffers
};

}  // namespace sgdph::lab::train
