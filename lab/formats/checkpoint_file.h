#pragma once

#include "base/error.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sgdph::lab::formats {

/// The container of a checkpoint: a fixed preamble, a JSON header, then named sections of bytes.
///
///   "SGDPHCKP" | version, header bytes, CRC of header, CRC of the 20 bytes before (each 32 bits, little-endian)
///   header: {"meta": {...}, "sections": [{"name", "bytes", "crc32"}, ...]}
///   sections, one after another, nothing after them
///
/// Every byte is covered by a checksum or compared, so that truncation and flipped bits are noticed.
struct CheckpointSection {
  std::string name;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t crc32 = 0;
};

/// A checkpoint that is not whole; one before it may be.
class DamagedCheckpoint : public UserError {
 public:
  using UserError::UserError;
};

struct CheckpointHeader {
  nlohmann::json meta;
  std::vector<CheckpointSection> sections;
};

/// Reads and checks all but the sections' checksums; a UserError begins with `where`.
CheckpointHeader parse_checkpoint_header(std::string_view bytes, const std::string& where);

struct CheckpointFile {  // NOLINT(bugprone-exception-escape): the library's json moves without throwing
  nlohmann::json meta;
  std::map<std::string, std::string> sections;
  /// A UserError if there is none of that name.
  const std::string& section(const std::string& name, const std::string& where) const;
};

bool is_checkpoint(std::string_view bytes);
CheckpointFile parse_checkpoint(std::string_view bytes, const std::string& where);
CheckpointFile read_checkpoint(const std::filesystem::path& path);

using CheckpointSections = std::vector<std::pair<std::string, std::string_view>>;
/// Atomic: the file appears whole or not at all.
void write_checkpoint(
    const std::filesystem::path& path, const nlohmann::json& meta, const CheckpointSections& sections);

}  // namespace sgdph::lab::formats
