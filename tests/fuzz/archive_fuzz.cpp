// Archives of data sets: whatever the bytes, the files that were asked for within the limits and nothing else in the
// folder, or a UserError of one line.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>

#include "fetch/unpack.h"
#include "fuzz.h"

namespace {

namespace fs = std::filesystem;

/// A folder in memory, for this process.
const fs::path& folder() {
  static const fs::path path = [] {
    std::string name =
        (fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path().string()) + "/sgdph-fuzz-XXXXXX";
    SGDPH_FUZZ_CHECK(::mkdtemp(name.data()) != nullptr);
    std::atexit([] { fs::remove_all(folder()); });
    return fs::path(name);
  }();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = ::memfd_create("archive", 0);
  SGDPH_FUZZ_CHECK(::ftruncate(file, 0) == 0 && ::pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
  sgdph::lab::fetch::UnpackOptions options;
  options.folder = "set";
  options.required = {"a"};
  options.optional = {"b"};
  options.max_bytes = 1 << 16;
  options.max_entries = 20;
  const auto target = folder() / "set";
  fs::create_directory(target);
  refused_in_one_line([&] {
    sgdph::lab::fetch::unpack("/proc/self/fd/" + std::to_string(file), target, options);
    SGDPH_FUZZ_CHECK(fs::is_regular_file(target / "a"));
  });
  uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder())) {
    const auto name = entry.path().filename();
    SGDPH_FUZZ_CHECK(name == "set" || name == "a" || name == "b");
    if (name == "set") continue;
    bytes += entry.file_size();
    fs::remove(entry.path());
  }
  SGDPH_FUZZ_CHECK(bytes <= 1 << 16);
  return 0;
}
