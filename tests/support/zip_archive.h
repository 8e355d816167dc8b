#pragma once

#include <string>
#include <utility>
#include <vector>

#include "formats/bytes.h"

namespace sgdph::test {

/// A ZIP archive of members that are stored as they are.
inline std::string zip_archive(const std::vector<std::pair<std::string, std::string>>& members) {
  using lab::formats::little_endian;
  std::string bytes;
  std::string directory;
  for (const auto& [name, content] : members) {
    // Version, flags, method, time and date; then checksum, both sizes, sizes of name and extra field.
    const auto common = std::string(10, '\0') + little_endian(lab::formats::crc32(content), 4) +
                        little_endian(content.size(), 4) + little_endian(content.size(), 4) +
                        little_endian(name.size(), 2) + little_endian(0, 2);
    directory += little_endian(0x02014b50, 4) + std::string(2, '\0') + common + std::string(10, '\0') +
                 little_endian(bytes.size(), 4) + name;
    bytes += little_endian(0x04034b50, 4) + common + name + content;
  }
  return bytes + directory + little_endian(0x06054b50, 4) + std::string(4, '\0') + little_endian(members.size(), 2) +
         little_endian(members.size(), 2) + little_endian(directory.size(), 4) + little_endian(bytes.size(), 4) +
         std::string(2, '\0');
}

}  // namespace sgdph::test
