#include "data/registry.h"

#include <algorithm>

#include "base/error.h"
#include "base/names.h"
#include "data/cifar.h"
#include "data/fashion_mnist.h"
#include "data/image_folder.h"
#include "data/mini_imagenet.h"

namespace sgdph::lab {
namespace {

namespace fs = std::filesystem;

/// A set that never augments.
class Plain : public Dataset {
 public:
  explicit Plain(std::unique_ptr<Dataset> data) : data_(std::move(data)) {}
  int64_t size() const override { return data_->size(); }
  int64_t classes() const override { return data_->classes(); }
  ImageShape shape() const override { return data_->shape(); }
  int64_t read(int64_t index, Random* /*random*/, float* out) const override {
    return data_->read(index, nullptr, out);
  }

 private:
  std::unique_ptr<Dataset> data_;
};

struct Known {
  DatasetInfo info;
  std::unique_ptr<Dataset> (*open)(const fs::path& folder, bool train);
};

const std::vector<Known>& known() {
  static const std::vector<Known> sets{
      {{"fashion-mnist", "Fashion-MNIST: 60,000 + 10,000 grey images of 28 x 28, 10 classes",
        "/usr/share/datasets/fashion-mnist", "install Debian's dataset-fashion-mnist", false, 1},
       open_fashion_mnist},
      {{"cifar10", "CIFAR-10: 50,000 + 10,000 images of 32 x 32, 10 classes", "data/cifar-10-batches-bin",
        "run 'sgdph data fetch cifar10'", false, 1},
       [](const fs::path& folder, bool train) { return open_cifar(folder, CifarFormat::kCifar10, train); }},
      {{"cifar100", "CIFAR-100: 50,000 + 10,000 images of 32 x 32, 100 classes", "data/cifar-100-binary",
        "run 'sgdph data fetch cifar100'", false, 1},
       [](const fs::path& folder, bool train) { return open_cifar(folder, CifarFormat::kCifar100, train); }},
      {{"mini-imagenet", "Mini-ImageNet: 50,000 + 10,000 images, 100 classes, at 224 x 224", "data/mini-imagenet",
        "see 'sgdph data fetch mini-imagenet'", true, 2},
       open_mini_imagenet},
      {{"imagenet", "ImageNet, or any class folders of JPEG: train/<class>/, val/<class>/, at 224 x 224",
        "data/imagenet", "see 'sgdph data fetch imagenet'", true, 2},
       open_image_folder},
  };
  return sets;
}

const Known& known_set(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& set : known()) {
    if (set.info.name == name) return set;
    names.push_back(set.info.name);
  }
  check_name("data set", name, names);
  throw UserError(name);  // not reached
}

/// With the folder that was asked for, so that the command can be copied.
std::string remedy(const DatasetInfo& info, const fs::path& path) {
  auto text = info.remedy;
  if (!path.empty() && text.rfind("run '", 0) == 0) text.insert(text.size() - 1, " --data-path " + path.string());
  return text;
}

std::unique_ptr<Dataset> open_part(const Known& set, const fs::path& path, bool train) {
  const auto folder = path.empty() ? fs::path(set.info.default_path) : path;
  // The formats know what is wrong; how to get the data is known here.
  try {
    if (!fs::exists(folder)) fail("the data folder {} does not exist", folder.string());
    if (!fs::is_directory(folder)) fail("the data folder {} is not a folder", folder.string());
    return set.open(folder, train);
  } catch (const UserError& error) {
    fail("{}: {}; {}", set.info.name, error.what(), remedy(set.info, path));
  } catch (const fs::filesystem_error& error) {
    fail("{}: cannot read {}: {}", set.info.name, error.path1().string(), error.code().message());
  }
}

}  // namespace

const std::vector<DatasetInfo>& dataset_infos() {
  static const auto infos = [] {
    std::vector<DatasetInfo> all;
    for (const auto& set : known()) all.push_back(set.info);
    return all;
  }();
  return infos;
}

const DatasetInfo& dataset_info(const std::string& name) {
  return known_set(name).info;
}

DatasetPair open_dataset(const std::string& name, const fs::path& path, bool augment) {
  const auto& set = known_set(name);
  DatasetPair pair{open_part(set, path, true), open_part(set, path, false)};
  if (!augment) pair.train = std::make_unique<Plain>(std::move(pair.train));
  return pair;
}

std::unique_ptr<Dataset> open_test_set(const std::string& name, const fs::path& path) {
  return open_part(known_set(name), path, false);
}

}  // namespace sgdph::lab
