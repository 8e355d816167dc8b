#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace sgdph::lab::data {

/// The files of an image set. ImageNet has 1.3 million: their names are kept in one string.
class ImageFiles {
 public:
  /// The number of the folder, for `add`.
  int64_t add_folder(std::filesystem::path folder);
  void add(int64_t folder, std::string_view name, int64_t label);

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  int64_t label(int64_t index) const { return entries_[static_cast<size_t>(index)].label; }
  std::filesystem::path path(int64_t index) const;

 private:
  struct Entry {
    size_t name_end;
    int32_t folder;
    int32_t label;
  };
  std::vector<std::filesystem::path> folders_;
  std::string names_;
  std::vector<Entry> entries_;
};

/// JPEG files, delivered as 224 x 224 pixels with ImageNet's normalisation. Augmented by a random resized crop and a
/// flip with probability 1/2.
class JpegImages : public Dataset {
 public:
  enum class TestView {
    kCentre,  ///< the shorter side to 256, then the centre
    kWhole,   ///< all of the picture, stretched
  };

  JpegImages(ImageFiles files, int64_t classes, TestView test_view);

  int64_t size() const override { return files_.size(); }
  int64_t classes() const override { return classes_; }
  ImageShape shape() const override;
  int64_t read(int64_t index, Random* random, float* out) const override;

 private:
  ImageFiles files_;
  int64_t classes_;
  TestView test_view_;
};

}  // namespace sgdph::lab::data
