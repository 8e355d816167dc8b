// The checkpoint reader: whatever the bytes, sections that tile the rest of the file, or a UserError. Checksums would
// keep the fuzzer out, so it is let in behind them, too: a preamble with right checksums is put before its bytes.

#include "formats/bytes.h"
#include "formats/checkpoint_file.h"
#include "fuzz.h"

namespace {

void parse(std::string_view bytes) {
  refused_in_one_line([&] {
    const auto header = sgdph::lab::formats::parse_checkpoint_header(bytes, "fuzz");
    SGDPH_FUZZ_CHECK(header.meta.is_object());
    uint64_t end = header.sections.empty() ? bytes.size() : header.sections.front().offset;
    for (const auto& section : header.sections) {
      SGDPH_FUZZ_CHECK(section.offset == end && section.bytes <= bytes.size() - end);
      end += section.bytes;
    }
    SGDPH_FUZZ_CHECK(end == bytes.size());
    sgdph::lab::formats::parse_checkpoint(bytes, "fuzz");
  });
}

}  // namespace

/// Four bytes (version, what is added to the header's length, its length), the header, the sections.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  parse(bytes);
  if (size < 4) return 0;
  const uint32_t length = data[2] | data[3] << 8;
  const auto header = bytes.substr(4, length);
  std::string whole = "SGDPHCKP";
  using sgdph::lab::formats::little_endian;
  whole += little_endian(data[0], 4);
  whole += little_endian(static_cast<uint32_t>(header.size()) + data[1] * 0x01010101U, 4);
  whole += little_endian(sgdph::lab::formats::crc32(header), 4);
  whole += little_endian(sgdph::lab::formats::crc32(whole), 4);
  whole += bytes.substr(4);
  parse(whole);
  return 0;
}
