#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sgdph::lab::formats {

/// The binary versions of CIFAR: records of the labels, a byte each, and 3 x 32 x 32 bytes, channel by channel.
enum class CifarFormat {
  kCifar10,   ///< one label below 10
  kCifar100,  ///< a coarse label below 20, then the fine one below 100
};

constexpr size_t kCifarPixels = size_t{3} * 32 * 32;

struct CifarImages {
  std::vector<uint8_t> labels;  ///< of CIFAR-100 the fine ones
  std::string pixels;           ///< kCifarPixels for each label
};

/// Appends the records of a file's `bytes`; `where` names it in messages. On a mistake `images` stays as it was.
void append_cifar(std::string_view bytes, CifarFormat format, const std::string& where, CifarImages& images);

}  // namespace sgdph::lab::formats
