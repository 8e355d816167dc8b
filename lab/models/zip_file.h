#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sgdph::lab {

/// The bytes are not what their format says. Caught where the file's name is known, and made a UserError there.
class DamagedFile : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Little-endian numbers and bytes from a buffer; whatever lies outside of it is a DamagedFile.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes, uint64_t position = 0);
  uint64_t number(size_t size);           ///< of 1 to 8 bytes
  std::string_view take(uint64_t size);   ///< that many bytes
  std::string_view take_until(char end);  ///< up to `end`, which is skipped
  size_t position() const { return position_; }

 private:
  std::string_view bytes_;
  size_t position_;
};

/// The members of a ZIP archive held in memory (PKWARE's APPNOTE 6.3.3, with ZIP64), stored without compression, which
/// is what torch.save writes. Sizes and checksums are checked.
/// The archive keeps no copy: `bytes` must outlive it.
class ZipFile {
 public:
  explicit ZipFile(std::string_view bytes);
  bool contains(const std::string& name) const { return members_.count(name) != 0; }
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

}  // namespace sgdph::lab
