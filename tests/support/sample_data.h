#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace sgdph::test {

/// Small well-formed data sets, written to a folder that is made. They can be learnt: a class is a pattern of
/// brightness, the same for all seeds, which flips and small shifts leave as it is; noise comes from the seed. Image i
/// has label i modulo the number of classes.

/// The four idx.gz files; 28 x 28, 10 classes.
void write_fashion_mnist(const std::filesystem::path& folder, int train, int test, uint64_t seed);
/// data_batch_1.bin to data_batch_5.bin (`train` is at least 5) and test_batch.bin.
void write_cifar10(const std::filesystem::path& folder, int train, int test, uint64_t seed);
/// train.bin and test.bin; the coarse label is the fine one by 5.
void write_cifar100(const std::filesystem::path& folder, int train, int test, uint64_t seed);
/// root/train/<class>/ and root/val/<class>/ with `per_class` JPEG files each, of several sizes about 120 x 90.
void write_image_folder(const std::filesystem::path& root, int classes, int per_class);

/// A JPEG of the pattern of class `label`.
std::string sample_jpeg(int width, int height, int label, uint64_t seed, int quality = 90);
/// A JPEG of given pixels: 3 bytes each, 1 for grey, 4 for CMYK.
std::string encode_jpeg(const std::string& pixels, int width, int height, int channels, int quality = 90);

void write_bytes(const std::filesystem::path& path, const std::string& bytes);
std::string gzip(const std::string& bytes);
/// An idx file of bytes; the sizes need not fit them.
std::string idx_bytes(const std::initializer_list<uint32_t>& sizes, const std::string& values);

}  // namespace sgdph::test
