#include "formats/bytes.h"

#include <zlib.h>

#include <array>

namespace sgdph::lab::formats {
namespace {

constexpr std::array<uint32_t, 256> make_castagnoli_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? (crc >> 1U) ^ 0x82F63B78U : crc >> 1U;
    table[i] = crc;
  }
  return table;
}

}  // namespace

std::string little_endian(uint64_t value, size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xFFU);
  return bytes;
}

uint64_t from_little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = (value << 8U) | static_cast<uint8_t>(bytes[i]);
  return value;
}

uint32_t crc32(std::string_view bytes) {
  return static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = make_castagnoli_table();
  uint32_t crc = 0xFFFFFFFFU;
  for (const auto byte : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xFFU] ^ (crc >> 8U);
  return ~crc;
}

ByteReader::ByteReader(std::string_view bytes, uint64_t position) : bytes_(bytes), position_(position) {
  if (position > bytes.size()) throw DamagedFile("it points beyond its end");
}

uint64_t ByteReader::number(size_t size) {
  return from_little_endian(take(size));
}

std::string_view ByteReader::take(uint64_t size) {
  if (size > bytes_.size() - position_) throw DamagedFile("it points beyond its end");
  const auto taken = bytes_.substr(position_, size);
  position_ += size;
  return taken;
}

std::string_view ByteReader::take_until(char end) {
  const auto found = bytes_.find(end, position_);
  if (found == std::string_view::npos) throw DamagedFile("a line does not end");
  const auto taken = bytes_.substr(position_, found - position_);
  position_ = found + 1;
  return taken;
}

}  // namespace sgdph::lab::formats
