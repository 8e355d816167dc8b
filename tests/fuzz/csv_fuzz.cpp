// CSV, and the image lists written in it: whatever the bytes, lines of fields, plain names with labels, or a UserError
// of one line.

#include "formats/csv.h"
#include "formats/image_list.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  refused_in_one_line([&] {
    sgdph::lab::formats::CsvReader reader(bytes, "fuzz");
    while (reader.next()) {
      SGDPH_FUZZ_CHECK(!reader.fields().empty());
      size_t characters = reader.fields().size() - 1;
      for (const auto& field : reader.fields()) {
        characters += field.size();
        SGDPH_FUZZ_CHECK(field.find('\n') == std::string::npos);
      }
      SGDPH_FUZZ_CHECK(characters <= reader.line().size());
    }
  });
  refused_in_one_line([&] {
    const auto images = sgdph::lab::formats::parse_image_list(bytes, "fuzz");
    SGDPH_FUZZ_CHECK(!images.empty());
    for (const auto& [filename, label] : images) {
      SGDPH_FUZZ_CHECK(!filename.empty() && !label.empty());
      SGDPH_FUZZ_CHECK(filename != "." && filename != "..");
      SGDPH_FUZZ_CHECK(filename.find_first_of(std::string_view("/\\\r\n\0", 5)) == std::string::npos);
      SGDPH_FUZZ_CHECK(label.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    }
  });
  return 0;
}
