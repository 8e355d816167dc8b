#include "formats/event_file.h"

#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "formats/bytes.h"

#include <algorithm>
#include <cstring>

namespace sgdph::lab::formats {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr size_t kHeaderBytes = 12;  // of a record: length and its checksum
constexpr size_t kFooterBytes = 4;

// Fields of Event, Summary and Summary.Value with their wire types (tensorflow/core/framework/summary.proto and
// util/event.proto).
enum Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
enum EventField : uint8_t { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5 };
enum SummaryField : uint8_t { kValue = 1 };
enum ValueField : uint8_t { kTag = 1, kSimpleValue = 2 };

std::string to_varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) bytes += static_cast<char>((value & 0x7FU) | 0x80U);
  return bytes + static_cast<char>(value);
}

std::string field_key(uint8_t field, Wire wire) {
  return to_varint(static_cast<uint64_t>(field) << 3U | wire);
}

std::string bytes_field(uint8_t field, std::string_view bytes) {
  return field_key(field, kBytes) + to_varint(bytes.size()) + std::string(bytes);
}

std::string double_field(uint8_t field, double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return field_key(field, kFixed64) + little_endian(bits, sizeof bits);
}

std::string float_field(uint8_t field, double value) {
  const auto narrow = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &narrow, sizeof bits);
  return field_key(field, kFixed32) + little_endian(bits, sizeof bits);
}

std::optional<uint64_t> take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  return std::nullopt;
}

/// The step of an event with a summary; nothing for other events and for what is no event.
std::optional<int64_t> step_of(std::string_view event) {
  int64_t step = 0;
  bool summary = false;
  while (!event.empty()) {
    const auto tag = take_varint(event);
    if (!tag) return std::nullopt;
    const auto field = *tag >> 3U;
    size_t skipped = 0;
    switch (*tag & 7U) {
      case kVarint: {
        const auto value = take_varint(event);
        if (!value) return std::nullopt;
        if (field == kStep) step = static_cast<int64_t>(*value);
        break;
      }
      case kFixed64: skipped = 8; break;
      case kFixed32: skipped = 4; break;
      case kBytes: {
        const auto size = take_varint(event);
        if (!size || *size > event.size()) return std::nullopt;
        skipped = *size;
        summary = summary || field == kSummary;
        break;
      }
      default: return std::nullopt;
    }
    if (skipped > event.size()) return std::nullopt;
    event.remove_prefix(skipped);
  }
  return summary ? std::optional(step) : std::nullopt;
}

std::string host_name() {
  const auto name = own_host();
  return name.empty() ? "host" : name;
}

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  const auto crc = crc32c(bytes);
  return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U;
}

std::string framed_record(std::string_view data) {
  const auto length = little_endian(data.size(), 8);
  return length + little_endian(masked_crc32c(length), 4) + std::string(data) + little_endian(masked_crc32c(data), 4);
}

std::string version_event(double wall_time) {
  return double_field(kWallTime, wall_time) + bytes_field(kFileVersion, "brain.Event:2");
}

std::string scalar_event(double wall_time, int64_t step, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const auto& scalar : scalars) {
    summary += bytes_field(kValue, bytes_field(kTag, scalar.tag) + float_field(kSimpleValue, scalar.value));
  }
  return double_field(kWallTime, wall_time) + field_key(kStep, kVarint) + to_varint(static_cast<uint64_t>(step)) +
         bytes_field(kSummary, summary);
}

std::optional<int64_t> last_event_step(std::string_view bytes) {
  std::optional<int64_t> last;
  while (bytes.size() >= kHeaderBytes + kFooterBytes) {
    const auto length = bytes.substr(0, 8);
    const auto size = from_little_endian(length);
    if (from_little_endian(bytes.substr(8, 4)) != masked_crc32c(length)) break;
    if (size > bytes.size() - kHeaderBytes - kFooterBytes) break;
    const auto data = bytes.substr(kHeaderBytes, size);
    if (from_little_endian(bytes.substr(kHeaderBytes + size, kFooterBytes)) != masked_crc32c(data)) break;
    if (const auto step = step_of(data)) last = std::max(last.value_or(*step), *step);
    bytes.remove_prefix(kHeaderBytes + size + kFooterBytes);
  }
  return last;
}

EventFile::EventFile(const std::filesystem::path& folder, double wall_time) {
  // The number tells files of one second apart, and keeps them in order.
  for (int number = 0; path_.empty() || std::filesystem::exists(path_); ++number) {
    path_ = folder / fmt::format("{}{:010}.{:04}.{}", kPrefix, static_cast<int64_t>(wall_time), number, host_name());
  }
  write_own_file(path_, {framed_record(version_event(wall_time))});
}

void EventFile::append(double wall_time, int64_t step, const std::vector<Scalar>& scalars) {
  append_to_file(path_, framed_record(scalar_event(wall_time, step, scalars)));
}

bool is_event_file(const std::filesystem::path& path) {
  return path.filename().string().rfind(kPrefix, 0) == 0;
}

}  // namespace sgdph::lab::formats
