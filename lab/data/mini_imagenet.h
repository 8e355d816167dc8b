#pragma once

#include <filesystem>
#include <memory>

#include "data/dataset.h"

namespace sgdph::lab {

/// Mini-ImageNet (Vinyals et al., 2016, in the lists of Ravi and Larochelle) as a task of classification: a folder with
/// train.csv, val.csv, test.csv and images/. The lists' classes are joined, 100 in the order of their labels; of each,
/// the first 500 listed images train and the last 100 test.
std::unique_ptr<Dataset> open_mini_imagenet(const std::filesystem::path& folder, bool train);

}  // namespace sgdph::lab
