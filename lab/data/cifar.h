#pragma once

#include <filesystem>
#include <memory>

#include "data/dataset.h"
#include "formats/cifar.h"

namespace sgdph::lab {

/// CIFAR-10 or CIFAR-100 (Krizhevsky, 2009), binary version. `folder` holds the files, or the folder that the official
/// archive unpacks to. Augmented by a crop of the image padded by 4 and a flip.
std::unique_ptr<Dataset> open_cifar(const std::filesystem::path& folder, CifarFormat format, bool train);

}  // namespace sgdph::lab
