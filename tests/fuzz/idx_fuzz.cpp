// The idx reader: whatever the bytes, an array whose sizes fit its values, or a UserError of one line.

#include "formats/idx.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  refused_in_one_line([&] {
    const auto array = sgdph::lab::formats::parse_idx(bytes, "fuzz");
    unsigned __int128 values = 1;
    for (const auto length : array.sizes) values *= length;
    SGDPH_FUZZ_CHECK(!array.sizes.empty() && array.sizes.size() <= 4);
    SGDPH_FUZZ_CHECK(values == array.data.size());
    SGDPH_FUZZ_CHECK(bytes.substr(size - array.data.size()) == array.data);
  });
  return 0;
}
