#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/datasets.h"

namespace sgdph::lab::data {

/// ImageNet's layout: root/train/<class>/*.JPEG and root/val/<class>/*.JPEG (or .jpg, in any case). Classes are
/// numbered in the order of their names, and both parts must have the same; without root/train the test part is read
/// alone.
std::unique_ptr<Dataset> open_image_folder(const DatasetEntry& entry, const std::filesystem::path& root, bool train);
/// The JPEG files of both parts.
std::vector<std::filesystem::path> image_folder_pictures(const DatasetEntry& entry, const std::filesystem::path& root);

}  // namespace sgdph::lab::data
