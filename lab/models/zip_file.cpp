#include "models/zip_file.h"

#include <zlib.h>

#include <algorithm>

namespace sgdph::lab {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50;
constexpr uint32_t kDirectoryEnd = 0x06054b50;
constexpr uint32_t kDirectoryEnd64 = 0x06064b50;
constexpr uint32_t kDirectoryLocator64 = 0x07064b50;
constexpr size_t kDirectoryEndSize = 22;
constexpr size_t kDirectoryLocatorSize = 20;
constexpr uint64_t kIn64 = 0xffffffff;  // the number is in a ZIP64 record
constexpr uint64_t kMaxComment = 0xffff;

uint32_t crc(std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// Where the record is that ends the archive.
size_t find_directory_end(std::string_view bytes) {
  if (bytes.size() < kDirectoryEndSize) throw DamagedFile("the archive is cut short");
  const size_t last = bytes.size() - kDirectoryEndSize;
  const size_t first = last - std::min<size_t>(last, kMaxComment);
  for (size_t position = last + 1; position-- > first;) {
    if (ByteReader(bytes, position).number(4) == kDirectoryEnd) return position;
  }
  throw DamagedFile("the archive's directory is missing, so the file is cut short");
}

}  // namespace

ByteReader::ByteReader(std::string_view bytes, uint64_t position) : bytes_(bytes), position_(position) {
  if (position > bytes.size()) throw DamagedFile("it points beyond its end");
}

uint64_t ByteReader::number(size_t size) {
  uint64_t value = 0;
  const auto digits = take(size);
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(digits[i]);
  return value;
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

ZipFile::ZipFile(std::string_view bytes) : bytes_(bytes) {
  const auto end = find_directory_end(bytes);
  ByteReader reader(bytes, end);
  reader.take(10);
  uint64_t entries = reader.number(2);
  reader.take(4);
  uint64_t directory = reader.number(4);
  if (end >= kDirectoryLocatorSize) {
    ByteReader locator(bytes, end - kDirectoryLocatorSize);
    if (locator.number(4) == kDirectoryLocator64) {
      locator.take(4);
      ByteReader end64(bytes, locator.number(8));
      if (end64.number(4) != kDirectoryEnd64) throw DamagedFile("the archive's ZIP64 record is missing");
      end64.take(28);
      entries = end64.number(8);
      end64.take(8);
      directory = end64.number(8);
    }
  }
  ByteReader reader_of_entries(bytes, directory);
  for (uint64_t i = 0; i < entries; ++i) add_member(reader_of_entries);
}

void ZipFile::add_member(ByteReader& directory) {
  if (directory.number(4) != kDirectoryEntry) throw DamagedFile("the archive's directory is damaged");
  directory.take(6);
  const auto method = directory.number(2);
  directory.take(4);
  Member member{};
  member.checksum = static_cast<uint32_t>(directory.number(4));
  uint64_t packed = directory.number(4);
  member.size = directory.number(4);
  const auto name_size = directory.number(2);
  const auto extra_size = directory.number(2);
  const auto comment_size = directory.number(2);
  directory.take(8);
  member.offset = directory.number(4);
  std::string name(directory.take(name_size));
  ByteReader extra(directory.take(extra_size));
  directory.take(comment_size);
  while (extra.position() + 4 <= extra_size) {
    const auto kind = extra.number(2);
    ByteReader field(extra.take(extra.number(2)));
    if (kind != 1) continue;
    // In this order, and only those that did not fit.
    for (auto* value : {&member.size, &packed, &member.offset}) {
      if (*value == kIn64) *value = field.number(8);
    }
  }
  member.stored = method == 0 && packed == member.size;
  const auto slash = name.find('/');
  if (slash != std::string::npos && folder_.empty()) folder_ = name.substr(0, slash);
  members_[std::move(name)] = member;
}

std::string_view ZipFile::read(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end()) throw DamagedFile("the archive has no member '" + name + "'");
  const auto& member = found->second;
  if (!member.stored)
    throw DamagedFile("the archive's member '" + name + "' is compressed, which torch.save never does");
  ByteReader reader(bytes_, member.offset);
  if (reader.number(4) != kLocalHeader)
    throw DamagedFile("the archive's member '" + name + "' is not where it should be");
  reader.take(22);
  const auto name_size = reader.number(2);
  const auto extra_size = reader.number(2);
  reader.take(name_size + extra_size);
  const auto content = reader.take(member.size);
  if (crc(content) != member.checksum) throw DamagedFile("the checksum of the archive's member '" + name + "' differs");
  return content;
}

}  // namespace sgdph::lab
