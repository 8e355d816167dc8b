#pragma once

#include <filesystem>
#include <memory>

#include "data/datasets.h"

namespace sgdph::lab::data {

/// Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017): four idx files, compressed or not. Augmented by a flip.
std::unique_ptr<Dataset> open_fashion_mnist(const DatasetEntry& entry, const std::filesystem::path& folder, bool train);

}  // namespace sgdph::lab::data
