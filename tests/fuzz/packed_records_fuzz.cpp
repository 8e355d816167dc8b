// Packed records: whatever the text, runs and files with names of their own that come back when they are packed anew,
// or a UserError. The first line is one that all texts share and would keep the fuzzer out, so it is put before them,
// too.

#include "base/error.h"
#include "fuzz.h"
#include "records/packed_records.h"

#include <set>

namespace {

using sgdph::lab::records::PackedRecords;

void unpack(const std::string& text) {
  PackedRecords records;
  try {
    records = sgdph::lab::records::unpack_records(text, "fuzz");
  } catch (const sgdph::lab::UserError&) {
    return;
  }
  std::set<std::string> names;
  for (const auto& run : records.runs) SGDPH_FUZZ_CHECK(names.insert(run.name).second);
  for (const auto& file : records.files) SGDPH_FUZZ_CHECK(names.insert(file.name).second);
  const auto back = sgdph::lab::records::unpack_records(sgdph::lab::records::pack_records(records), "fuzz");
  SGDPH_FUZZ_CHECK(back.runs.size() == records.runs.size() && back.files.size() == records.files.size());
  for (size_t i = 0; i < back.runs.size(); ++i) {
    SGDPH_FUZZ_CHECK(back.runs[i].name == records.runs[i].name && back.runs[i].lines == records.runs[i].lines);
  }
  for (size_t i = 0; i < back.files.size(); ++i) SGDPH_FUZZ_CHECK(back.files[i].name == records.files[i].name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  unpack(text);
  unpack(
      R"({"sgdph_records":1,"lines":1,"header":{"cpu":"c"},"settings":{"lr":0.1}})"
      "\n" +
      text + "\n");
  return 0;
}
