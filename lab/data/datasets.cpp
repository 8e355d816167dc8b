#include "data/datasets.h"

#include <fmt/ranges.h>

#include <utility>

#include "base/error.h"
#include "base/names.h"

namespace sgdph::lab::data {
namespace {

namespace fs = std::filesystem;

/// A set that never augments.
class Unaugmented : public Dataset {
 public:
  explicit Unaugmented(std::unique_ptr<Dataset> data) : data_(std::move(data)) {}
  int64_t size() const override { return data_->size(); }
  int64_t classes() const override { return data_->classes(); }
  ImageShape shape() const override { return data_->shape(); }
  int64_t read(int64_t index, Random* /*random*/, float* out) const override {
    return data_->read(index, nullptr, out);
  }

 private:
  std::unique_ptr<Dataset> data_;
};

std::string grouped(int64_t number) {
  return fmt::format("{}", fmt::group_digits(number));
}

std::string file_names(const DatasetPart& part) {
  std::vector<std::string> names;
  for (const auto& file : part.files) names.push_back(file.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::unique_ptr<Dataset> open_part(const DatasetEntry& entry, const fs::path& path, bool train) {
  const auto folder = data_folder(entry, path);
  // The formats know what is wrong; how to get the data is known here.
  try {
    if (!fs::exists(folder)) fail("the data folder {} does not exist", folder.string());
    if (!fs::is_directory(folder)) fail("the data folder {} is not a folder", folder.string());
    return entry.open(entry, folder, train);
  } catch (const UserError& error) {
    // Whoever named a folder that is not there mistook it; a package would not make it.
    std::error_code unknown;
    const bool named =
        !entry.origin.package.empty() && !path.empty() && path != entry.default_path && !fs::exists(folder, unknown);
    fail(
        "{}: {}; {}{}", entry.name, error.what(), named ? "give the folder that has it with --data-path, or " : "",
        remedy(entry, path));
  } catch (const fs::filesystem_error& error) {
    fail("{}: cannot read {}: {}", entry.name, error.path1().string(), error.code().message());
  }
}

}  // namespace

const DatasetEntry& dataset(const std::string& name) {
  return find_named(datasets(), "data set", name);
}

std::string description(const DatasetEntry& entry) {
  const auto& [channels, height, width] = entry.shape;
  const auto parts = fmt::format("{} + {}", grouped(entry.train.images), grouped(entry.test.images));
  const auto classes = grouped(entry.classes);
  if (entry.pictures != nullptr) {
    return fmt::format("{}: {} images, {} classes, at {} x {}", entry.title, parts, classes, height, width);
  }
  return fmt::format(
      "{}: {} {}images of {} x {}, {} classes", entry.title, parts, channels == 1 ? "grey " : "", height, width,
      classes);
}

std::string instructions(const DatasetEntry& entry) {
  return fmt::format(
      fmt::runtime(entry.origin.instructions), fmt::arg("name", entry.name), fmt::arg("path", entry.default_path),
      fmt::arg("package", entry.origin.package), fmt::arg("classes", entry.classes),
      fmt::arg("train", grouped(entry.train.images)), fmt::arg("test", grouped(entry.test.images)),
      fmt::arg("train_each", entry.train.images / entry.classes),
      fmt::arg("test_each", entry.test.images / entry.classes), fmt::arg("train_files", file_names(entry.train)),
      fmt::arg("test_files", file_names(entry.test)));
}

std::string remedy(const DatasetEntry& entry, const fs::path& path) {
  if (!entry.origin.package.empty()) return "install Debian's " + entry.origin.package;
  if (!entry.origin.archive) return fmt::format("see 'sgdph data fetch {}'", entry.name);
  const auto place = path.empty() ? "" : " --data-path " + path.string();
  return fmt::format("run 'sgdph data fetch {}{}'", entry.name, place);
}

fs::path data_folder(const DatasetEntry& entry, const fs::path& path) {
  const fs::path default_path = entry.default_path;
  auto folder = path.empty() ? default_path : path;
  if (!entry.origin.archive) return folder;
  std::error_code error;
  auto inner = folder / default_path.filename();
  return fs::is_directory(inner, error) ? inner : folder;
}

DatasetPair open_dataset(const std::string& name, const fs::path& path, bool augment) {
  const auto& entry = dataset(name);
  DatasetPair pair{open_part(entry, path, true), open_part(entry, path, false), nullptr};
  if (!augment) pair.train = std::make_unique<Unaugmented>(std::move(pair.train));
  return pair;
}

std::unique_ptr<Dataset> open_test_set(const std::string& name, const fs::path& path) {
  return open_part(dataset(name), path, false);
}

}  // namespace sgdph::lab::data
