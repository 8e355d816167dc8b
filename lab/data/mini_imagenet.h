#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/datasets.h"

namespace sgdph::lab::data {

/// Mini-ImageNet (Vinyals et al., 2016, in the lists of Ravi and Larochelle) as a task of classification: a folder with
/// the entry's lists and images/. The lists' classes are joined, in the order of their labels; of each, the first
/// listed images train and the last test, as many as the entry's numbers say.
std::unique_ptr<Dataset> open_mini_imagenet(const DatasetEntry& entry, const std::filesystem::path& folder, bool train);
/// The files that the lists name.
std::vector<std::filesystem::path> mini_imagenet_pictures(
    const DatasetEntry& entry, const std::filesystem::path& folder);

}  // namespace sgdph::lab::data
