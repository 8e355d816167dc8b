#include "formats/checkpoint_file.h"

#include "base/files.h"
#include "base/json.h"
#include "formats/bytes.h"

namespace sgdph::lab::formats {
namespace {

constexpr std::string_view kMagic = "SGDPHCKP";
constexpr uint32_t kVersion = 1;
constexpr size_t kPreamble = 24;

uint64_t number_at(std::string_view bytes, size_t at) {
  return from_little_endian(bytes.substr(at, 4));
}

[[noreturn]] void damaged(const std::string& where, const std::string& what) {
  throw DamagedCheckpoint(fmt::format("{}: {}; the file is truncated or damaged", where, what));
}

/// A whole number that is not negative, of a JSON object.
uint64_t whole(const nlohmann::json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) damaged(where, fmt::format("bad '{}' in its header", key));
  return found->get<uint64_t>();
}

std::vector<CheckpointSection> parse_sections(
    const nlohmann::json& list, std::string_view bytes, uint64_t offset, const std::string& where) {
  std::vector<CheckpointSection> sections;
  for (const auto& entry : list) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string()) damaged(where, "bad section list");
    CheckpointSection section;
    section.name = entry["name"].get<std::string>();
    section.bytes = whole(entry, "bytes", where);
    const auto crc = whole(entry, "crc32", where);
    if (crc > UINT32_MAX) damaged(where, "bad section list");
    section.crc32 = static_cast<uint32_t>(crc);
    section.offset = offset;
    if (section.bytes > bytes.size() - offset) {
      damaged(where, fmt::format("section '{}' is cut short", section.name));
    }
    offset += section.bytes;
    sections.push_back(std::move(section));
  }
  if (offset != bytes.size()) damaged(where, fmt::format("{} bytes after its end", bytes.size() - offset));
  return sections;
}

}  // namespace

bool is_checkpoint(std::string_view bytes) {
  return bytes.substr(0, kMagic.size()) == kMagic;
}

CheckpointHeader parse_checkpoint_header(std::string_view bytes, const std::string& where) {
  if (!is_checkpoint(bytes)) {
    if (bytes.empty() || kMagic.substr(0, bytes.size()) == bytes) damaged(where, "no header");
    // A disk may give back anything, from the first byte on.
    throw DamagedCheckpoint(fmt::format("{} is not a checkpoint of sgdph, or its first bytes are damaged", where));
  }
  if (bytes.size() < kPreamble) damaged(where, "no header");
  if (crc32(bytes.substr(0, kPreamble - 4)) != number_at(bytes, kPreamble - 4)) damaged(where, "bad preamble");
  if (const auto version = number_at(bytes, 8); version != kVersion) {
    fail("{} has checkpoint format {}, this program reads {}; use the version that wrote it", where, version, kVersion);
  }
  const uint64_t length = number_at(bytes, 12);
  if (length > bytes.size() - kPreamble) damaged(where, "its header is cut short");
  const auto text = bytes.substr(kPreamble, length);
  if (crc32(text) != number_at(bytes, 16)) damaged(where, "wrong checksum of its header");

  try {
    check_json(text, where);
  } catch (const UserError& error) {
    throw DamagedCheckpoint(error.what());
  }
  const auto header = nlohmann::json::parse(text, nullptr, false);
  if (!header.is_object() || !header.contains("meta") || !header.contains("sections") || !header["meta"].is_object() ||
      !header["sections"].is_array()) {
    damaged(where, "its header is not what it should be");
  }
  return {header["meta"], parse_sections(header["sections"], bytes, kPreamble + length, where)};
}

CheckpointFile parse_checkpoint(std::string_view bytes, const std::string& where) {
  const auto header = parse_checkpoint_header(bytes, where);
  CheckpointFile file;
  file.meta = header.meta;
  for (const auto& section : header.sections) {
    const auto content = bytes.substr(section.offset, section.bytes);
    if (crc32(content) != section.crc32) damaged(where, fmt::format("wrong checksum of section '{}'", section.name));
    file.sections.emplace(section.name, content);
  }
  return file;
}

CheckpointFile read_checkpoint(const std::filesystem::path& path) {
  return parse_checkpoint(read_file(path), path.string());
}

const std::string& CheckpointFile::section(const std::string& name, const std::string& where) const {
  const auto found = sections.find(name);
  if (found == sections.end()) fail("{}: the checkpoint has no section '{}'", where, name);
  return found->second;
}

void write_checkpoint(
    const std::filesystem::path& path, const nlohmann::json& meta, const CheckpointSections& sections) {
  auto list = nlohmann::json::array();
  for (const auto& [name, bytes] : sections) {
    list.push_back({{"name", name}, {"bytes", bytes.size()}, {"crc32", crc32(bytes)}});
  }
  const auto text = nlohmann::json{{"meta", meta}, {"sections", list}}.dump();
  std::string preamble(kMagic);
  for (const uint64_t number : {uint64_t{kVersion}, uint64_t{text.size()}, uint64_t{crc32(text)}}) {
    preamble += little_endian(number, 4);
  }
  preamble += little_endian(crc32(preamble), 4);
  std::vector<std::string_view> pieces{preamble, text};
  for (const auto& section : sections) pieces.push_back(section.second);
  write_own_file(path, pieces);
}

}  // namespace sgdph::lab::formats
