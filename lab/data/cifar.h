#pragma once

#include <filesystem>
#include <memory>

#include "data/datasets.h"

namespace sgdph::lab::data {

/// CIFAR-10 and CIFAR-100 (Krizhevsky, 2009), binary version. Augmented by a crop of the image padded by 4 and a flip.
std::unique_ptr<Dataset> open_cifar10(const DatasetEntry& entry, const std::filesystem::path& folder, bool train);
std::unique_ptr<Dataset> open_cifar100(const DatasetEntry& entry, const std::filesystem::path& folder, bool train);

}  // namespace sgdph::lab::data
