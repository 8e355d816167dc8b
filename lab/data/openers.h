#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/datasets.h"

namespace sgdph::lab::data {

// What opens each data set of the table; the sources bear the sets' names.

/// CIFAR-10 and CIFAR-100 (Krizhevsky, 2009), binary version. Augmented by a crop of the image padded by 4 and a flip.
std::unique_ptr<Dataset> open_cifar10(const DatasetEntry& entry, const std::filesystem::path& folder, bool train);
std::unique_ptr<Dataset> open_cifar100(const DatasetEntry& entry, const std::filesystem::path& folder, bool train);

/// Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017): four idx files, compressed or not. Augmented by a flip.
std::unique_ptr<Dataset> open_fashion_mnist(const DatasetEntry& entry, const std::filesystem::path& folder, bool train);

/// ImageNet's layout: root/train/<class>/*.JPEG and root/val/<class>/*.JPEG (or .jpg, in any case). Classes are
/// numbered in the order of their names, and both parts must have the same; without root/train the test part is read
/// alone.
std::unique_ptr<Dataset> open_image_folder(const DatasetEntry& entry, const std::filesystem::path& root, bool train);
/// The JPEG files of both parts.
std::vector<std::filesystem::path> image_folder_pictures(const DatasetEntry& entry, const std::filesystem::path& root);

/// Mini-ImageNet (Vinyals et al., 2016, in the lists of Ravi and Larochelle) as a task of classification: a folder with
/// the entry's lists and images/. The lists' classes are joined, in the order of their labels; of each, the first
/// listed images train and the last test, as many as the entry's numbers say.
std::unique_ptr<Dataset> open_mini_imagenet(const DatasetEntry& entry, const std::filesystem::path& folder, bool train);
/// The files that the lists name.
std::vector<std::filesystem::path> mini_imagenet_pictures(
    const DatasetEntry& entry, const std::filesystem::path& folder);

}  // namespace sgdph::lab::data
