#include "data/split.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace sgdph::lab::data {
namespace {

/// Of the generator; a loader with the same seed draws from others.
constexpr uint64_t kSplitStream = ~uint64_t{1};

/// Some images of a set that others have a part of too.
class Subset : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> data, std::vector<int64_t> images)
      : data_(std::move(data)), images_(std::move(images)) {}

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  int64_t classes() const override { return data_->classes(); }
  ImageShape shape() const override { return data_->shape(); }
  int64_t read(int64_t index, Random* random, float* out) const override {
    return data_->read(images_.at(static_cast<size_t>(index)), random, out);
  }

 private:
  std::shared_ptr<const Dataset> data_;
  std::vector<int64_t> images_;
};

}  // namespace

int64_t held_out_images(double split, int64_t images) {
  if (split >= 1 && split != std::floor(split)) {
    fail("--val-split: {} is no number of images; give a whole one, or a fraction below 1", split);
  }
  const auto count = split < 1 ? std::round(split * static_cast<double>(images)) : split;
  if (count < 1) fail("--val-split: {} of {} training images is not one image", split, images);
  if (count >= static_cast<double>(images)) {
    fail("--val-split: {} leaves nothing of {} training images to train on", split, images);
  }
  return static_cast<int64_t>(count);
}

void hold_out(DatasetPair& pair, int64_t images, uint64_t seed) {
  const std::shared_ptr<const Dataset> all = std::move(pair.train);
  std::vector<int64_t> held_out;
  std::vector<int64_t> rest;
  Random random(seed, kSplitStream);
  // Each image in turn with the chance that makes the number come out.
  auto wanted = images;
  for (int64_t i = 0; i < all->size(); ++i) {
    const bool chosen = random.below(all->size() - i) < wanted;
    (chosen ? held_out : rest).push_back(i);
    wanted -= chosen ? 1 : 0;
  }
  pair.train = std::make_unique<Subset>(all, std::move(rest));
  pair.validation = std::make_unique<Subset>(all, std::move(held_out));
}

}  // namespace sgdph::lab::data
