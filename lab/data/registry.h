#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"

namespace sgdph::lab {

/// What the lab knows of a data set before it is opened.
struct DatasetInfo {
  std::string name;           ///< fashion-mnist, cifar10, cifar100, mini-imagenet, imagenet
  std::string title;          ///< one line for lists
  std::string default_path;   ///< where it is looked for unless --data-path is given
  std::string remedy;         ///< how to get it, for error messages: "run 'sgdph data fetch cifar100' ..."
  bool large_images = false;  ///< 224 x 224: models take their ImageNet form
  int64_t default_workers = 1;
};

const std::vector<DatasetInfo>& dataset_infos();
/// A UserError with the nearest name if there is none.
const DatasetInfo& dataset_info(const std::string& name);

struct DatasetPair {
  std::unique_ptr<Dataset> train;  ///< augments when read with a Random
  std::unique_ptr<Dataset> test;
};

/// Opens both parts; every mistake in the data is a UserError that names file, place, value and remedy. An empty `path`
/// means the default one. `augment` false: `train` ignores its Random.
DatasetPair open_dataset(const std::string& name, const std::filesystem::path& path, bool augment = true);
/// The test part alone.
std::unique_ptr<Dataset> open_test_set(const std::string& name, const std::filesystem::path& path);

}  // namespace sgdph::lab
