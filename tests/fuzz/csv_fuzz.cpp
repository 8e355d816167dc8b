// The image lists: whatever the bytes, plain names with labels, or a UserError of one line.

#include "base/error.h"
#include "formats/csv.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto images = sgdph::lab::parse_image_list(bytes, "fuzz");
    SGDPH_FUZZ_CHECK(!images.empty());
    for (const auto& [filename, label] : images) {
      SGDPH_FUZZ_CHECK(!filename.empty() && !label.empty());
      SGDPH_FUZZ_CHECK(filename != "." && filename != "..");
      SGDPH_FUZZ_CHECK(filename.find_first_of(std::string_view("/\\,\r\n\0", 6)) == std::string::npos);
      SGDPH_FUZZ_CHECK(label.find_first_of(std::string_view(",\r\n\0", 4)) == std::string::npos);
    }
  } catch (const sgdph::lab::UserError& error) {
    SGDPH_FUZZ_CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
