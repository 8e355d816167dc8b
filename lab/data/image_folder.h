#pragma once

#include <filesystem>
#include <memory>

#include "data/dataset.h"

namespace sgdph::lab {

/// ImageNet's layout: root/train/<class>/*.JPEG and root/val/<class>/*.JPEG (or .jpg, in any case). Classes are
/// numbered in the order of their names, and both parts must have the same; without root/train the test part is read
/// alone.
std::unique_ptr<Dataset> open_image_folder(const std::filesystem::path& root, bool train);

}  // namespace sgdph::lab
