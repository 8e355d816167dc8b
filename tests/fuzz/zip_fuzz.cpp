// The ZIP reader: whatever the bytes, members that lie within them and have their checksum, or a DamagedFile of one
// line.

#include "formats/zip_file.h"
#include "fuzz.h"

using sgdph::lab::formats::DamagedFile;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  refused_in_one_line<DamagedFile>([&] {
    const sgdph::lab::formats::ZipFile archive(bytes);
    SGDPH_FUZZ_CHECK(archive.folder().find('/') == std::string::npos);
    for (const auto& name : archive.names()) {
      SGDPH_FUZZ_CHECK(archive.contains(name));
      refused_in_one_line<DamagedFile>([&] {
        const auto content = archive.read(name);
        SGDPH_FUZZ_CHECK(content.data() >= bytes.data());
        SGDPH_FUZZ_CHECK(content.data() + content.size() <= bytes.data() + bytes.size());
      });
    }
    refused_in_one_line<DamagedFile>([&] { archive.read(archive.folder() + "/data.pkl"); });
  });
  return 0;
}
