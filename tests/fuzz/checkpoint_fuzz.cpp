// The checkpoint reader: whatever the bytes, sections that tile the rest of the file, or a UserError. Checksums would
// keep the fuzzer out, so it is let in behind them, too: a preamble with right checksums is put before its bytes.

#include <zlib.h>

#include "base/error.h"
#include "formats/checkpoint_file.h"
#include "fuzz.h"

namespace {

void put_number(std::string& to, uint32_t number) {
  for (int shift = 0; shift < 32; shift += 8) to += static_cast<char>(number >> shift & 0xFF);
}

uint32_t crc_of(std::string_view bytes) {
  return static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void parse(std::string_view bytes) {
  try {
    const auto header = sgdph::lab::parse_checkpoint_header(bytes, "fuzz");
    SGDPH_FUZZ_CHECK(header.meta.is_object());
    uint64_t end = header.sections.empty() ? bytes.size() : header.sections.front().offset;
    for (const auto& section : header.sections) {
      SGDPH_FUZZ_CHECK(section.offset == end && section.bytes <= bytes.size() - end);
      end += section.bytes;
    }
    SGDPH_FUZZ_CHECK(end == bytes.size());
    sgdph::lab::parse_checkpoint(bytes, "fuzz");
  } catch (const sgdph::lab::UserError&) {
  }
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
  put_number(whole, data[0]);
  put_number(whole, static_cast<uint32_t>(header.size()) + data[1] * 0x01010101U);
  put_number(whole, crc_of(header));
  put_number(whole, crc_of(whole));
  whole += bytes.substr(4);
  parse(whole);
  return 0;
}
