#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sgdph::lab::formats {

/// What the binary formats are made of: little-endian numbers and checksums.

/// The lowest `count` bytes, lowest first.
std::string little_endian(uint64_t value, size_t count);
/// The number that up to eight bytes are.
uint64_t from_little_endian(std::string_view bytes);

/// CRC-32, as in gzip and ZIP.
uint32_t crc32(std::string_view bytes);
/// CRC-32C (Castagnoli), as in iSCSI.
uint32_t crc32c(std::string_view bytes);

/// The bytes are not what their format says. Caught where the file's name is known, and made a UserError there.
class DamagedFile : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Little-endian numbers and bytes from a buffer; whatever lies outside of it is a DamagedFile.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes, uint64_t position = 0);
  uint64_t number(size_t size);           ///< of up to 8 bytes
  std::string_view take(uint64_t size);   ///< that many bytes
  std::string_view take_until(char end);  ///< up to `end`, which is skipped
  size_t position() const { return position_; }

 private:
  std::string_view bytes_;
  size_t position_;
};

}  // namespace sgdph::lab::formats
