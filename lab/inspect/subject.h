#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>

#include "models/image_model.h"
#include "settings/settings.h"

namespace sgdph::lab::inspect {

/// What is looked at: a network with its weights, and the first batch of its training.
struct Subject {
  settings::Settings settings;  ///< resolved
  std::string source;           ///< where the weights come from
  std::shared_ptr<models::ImageModel> model;
  at::Tensor images, labels;

  /// The training loss of `count` of the batch's images: batch norm normalises by them and keeps its running
  /// statistics. What is drawn at random, such as dropout, is the same at every call.
  at::Tensor loss(int64_t begin, int64_t count) const;
  at::Tensor loss(int64_t count) const { return loss(0, count); }
  at::Tensor loss() const { return loss(images.size(0)); }
};

/// Weights to look at.
struct SavedWeights {
  std::string source;
  std::optional<std::string> state_dict;  ///< bytes; without: the network as it begins, or `init` of the settings
};

/// A UserError for settings, data or weights that do not go together, and for weights that give no finite loss.
Subject prepare_subject(const settings::Settings& settings, const SavedWeights& weights, bool float64);

}  // namespace sgdph::lab::inspect
