#pragma once

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

#include "data/loader.h"
#include "dist/group.h"
#include "train/evaluate.h"
#include "train/run_parts.h"

namespace sgdph::lab::train {

/// Measures the network of a run: along the way on its validation images, and on the test set at the end. A run that
/// holds none out is measured on the test set all along.
class Judge {
 public:
  /// Every rank of the group judges its part, and all get the result of the whole. `group` must outlive it.
  Judge(const RunParts& parts, dist::Group& group);

  bool validates() const { return validation_ != nullptr; }
  /// What the run is measured on along the way: in the keys of logs ("val", "test"), and in words.
  std::string key() const { return validates() ? "val" : "test"; }
  std::string word() const { return validates() ? "validation" : "test"; }

  /// On at most `limit` images, as evaluate() does; 0: all.
  Evaluation on_the_way(int64_t limit = 0);
  Evaluation at_the_end();

  int64_t validation_images() const { return validates() ? validation_->images() : 0; }
  int64_t test_images() const { return test_->images(); }

 private:
  dist::Group& group_;
  models::ImageModel& model_;
  at::Device device_;
  bool bf16_;
  std::unique_ptr<data::Loader> test_;
  std::unique_ptr<data::Loader> validation_;  ///< null: none
};

/// KEY_loss, KEY_top1 and KEY_top5.
nlohmann::json figures_of(const std::string& key, const Evaluation& evaluation);

}  // namespace sgdph::lab::train
