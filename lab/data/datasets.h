#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace sgdph::lab::data {

/// The folder of data sets that we download, unless another is named.
constexpr const char* kDataRoot = "data";

/// An archive of the folder that the default path ends in.
struct DatasetArchive {
  std::string url;
  std::string checksum;               ///< md5:... or sha256:...
  std::vector<std::string> optional;  ///< files worth keeping beside those of the parts
  int64_t max_bytes = 0;              ///< unpacked
};

/// How a data set is got: by download, or by the user.
struct DatasetOrigin {
  std::optional<DatasetArchive> archive;
  std::string package;  ///< of Debian, if it is one
  /// What the user must do where there is no archive. A {word} stands for what the entry says: name, path, package,
  /// classes, train and test (images), train_each and test_each (of a class), train_files and test_files.
  std::string instructions;
};

struct DatasetFile {
  std::string name;                   ///< below the folder; of ImageNet's parts, a folder
  std::vector<std::string> md5 = {};  ///< digests under which it is known as published
};

struct DatasetPart {
  int64_t images = 0;  ///< as published
  std::vector<DatasetFile> files;
};

/// All that is known of a data set before it is opened: a row of the table in table.cpp. Lists, settings, `fetch` and
/// `verify` follow from it.
struct DatasetEntry {
  std::string name;
  std::string title;
  ImageShape shape;  ///< of an image as it is delivered
  int64_t classes = 0;
  DatasetPart train, test;
  std::string default_path;  ///< where it is looked for unless --data-path is given
  DatasetOrigin origin;
  /// Opens a part of what is in the folder; what is wrong there is a UserError.
  std::unique_ptr<Dataset> (*open)(const DatasetEntry& entry, const std::filesystem::path& folder, bool train) =
      nullptr;
  /// The single JPEG files, which are decoded as they are read; null: it has none.
  std::vector<std::filesystem::path> (*pictures)(const DatasetEntry& entry, const std::filesystem::path& folder) =
      nullptr;

  /// Models take their ImageNet form.
  bool large_images() const { return shape.height >= 224; }
  int64_t default_workers() const { return pictures != nullptr ? 2 : 1; }
};

const std::vector<DatasetEntry>& datasets();
/// A UserError with the nearest name if there is none.
const DatasetEntry& dataset(const std::string& name);

/// One line for lists: title, numbers and sizes.
std::string description(const DatasetEntry& entry);
/// The text of the origin, filled in.
std::string instructions(const DatasetEntry& entry);
/// How to get it, for error messages, with the folder that was asked for, so that the command can be copied.
std::string remedy(const DatasetEntry& entry, const std::filesystem::path& path);
/// `path`, or the folder inside it that the archive unpacks to; where `path` is empty, of the default one.
std::filesystem::path data_folder(const DatasetEntry& entry, const std::filesystem::path& path);

struct DatasetPair {
  std::unique_ptr<Dataset> train;  ///< augments when read with a Random
  std::unique_ptr<Dataset> test;
  std::unique_ptr<Dataset> validation;  ///< held out of the training part; null without a split
};

/// Opens both parts; every mistake in the data is a UserError that names file, place, value and remedy. An empty `path`
/// means the default one. `augment` false: `train` ignores its Random.
DatasetPair open_dataset(const std::string& name, const std::filesystem::path& path, bool augment = true);
/// The test part alone.
std::unique_ptr<Dataset> open_test_set(const std::string& name, const std::filesystem::path& path);

}  // namespace sgdph::lab::data
