#include "formats/zip_file.h"

#include "base/escape.h"

#include <fmt/format.h>

#include <algorithm>

namespace sgdph::lab::formats {
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

std::vector<std::string> ZipFile::names() const {
  std::vector<std::string> names;
  for (const auto& member : members_) names.push_back(member.first);
  return names;
}

std::string_view ZipFile::read(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end()) throw DamagedFile(fmt::format("the archive has no member '{}'", printable(name)));
  const auto& member = found->second;
  const auto refuse = [&](const char* what) {
    throw DamagedFile(fmt::format("the archive's member '{}' {}", printable(name), what));
  };
  if (!member.stored) refuse("is compressed, which torch.save never does");
  ByteReader reader(bytes_, member.offset);
  if (reader.number(4) != kLocalHeader) refuse("is not where it should be");
  reader.take(22);
  const auto name_size = reader.number(2);
  const auto extra_size = reader.number(2);
  reader.take(name_size + extra_size);
  const auto content = reader.take(member.size);
  if (crc32(content) != member.checksum) refuse("has another checksum");
  return content;
}

}  // namespace sgdph::lab::formats
