#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sgdph::lab::formats {

/// An array of unsigned bytes in the idx format of MNIST: two zero bytes, the type (8), the number of sizes, the sizes
/// (big-endian, 32 bits each), the values.
struct IdxArray {
  std::vector<uint32_t> sizes;
  std::string data;
};

/// `where` names the source in messages. Nothing is allocated for what a header announces but the bytes do not hold.
IdxArray parse_idx(std::string_view bytes, const std::string& where);

/// Of a file, compressed by gzip or plain.
IdxArray read_idx_file(const std::filesystem::path& path);

}  // namespace sgdph::lab::formats
