#pragma once

#include "formats/bytes.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sgdph::lab::formats {

/// The members of a ZIP archive held in memory (PKWARE's APPNOTE 6.3.3, with ZIP64), stored without compression, which
/// is what torch.save writes. Sizes and checksums are checked.
/// The archive keeps no copy: `bytes` must outlive it.
class ZipFile {
 public:
  explicit ZipFile(std::string_view bytes);
  bool contains(const std::string& name) const { return members_.count(name) != 0; }
  std::vector<std::string> names() const;
  /// The member's bytes, with the checksum compared.
  std::string_view read(const std::string& name) const;
  /// The name of the only folder at the top, which torch.save names after the file.
  const std::string& folder() const { return folder_; }

 private:
  struct Member {
    uint64_t offset, size;
    uint32_t checksum;
    bool stored;
  };

  void add_member(ByteReader& directory);

  std::string_view bytes_;
  std::unordered_map<std::string, Member> members_;
  std::string folder_;
};

}  // namespace sgdph::lab::formats
