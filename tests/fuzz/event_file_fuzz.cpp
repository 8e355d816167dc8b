// Event files: whatever the bytes, as a file or as an event under good checksums, a step or none.

#include "formats/event_file.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(sgdph::lab::formats::last_event_step(bytes));
  const auto whole = sgdph::lab::formats::framed_record(sgdph::lab::formats::scalar_event(1, 7, {{"a", 1}}));
  const auto step = sgdph::lab::formats::last_event_step(whole + sgdph::lab::formats::framed_record(bytes));
  SGDPH_FUZZ_CHECK(step && *step >= 7);
  return 0;
}
