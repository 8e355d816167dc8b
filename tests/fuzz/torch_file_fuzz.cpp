// Files of torch.save: whatever the bytes, tensors within their storages, or a DamagedFile of one line. Checksums would
// keep the fuzzer out of the pickle, so it is let in behind them, too: its bytes become the pickle of a whole archive.

#include "formats/torch_file.h"
#include "fuzz.h"
#include "support/zip_archive.h"

namespace {

using sgdph::lab::formats::DamagedFile;

/// Where the last element is, by sums that cannot overflow.
void check_bounds(const sgdph::lab::formats::StoredTensor& tensor) {
  SGDPH_FUZZ_CHECK(tensor.sizes.size() == tensor.strides.size());
  SGDPH_FUZZ_CHECK(tensor.offset >= 0 && tensor.storage_size >= 0);
  __int128 last = tensor.offset;
  bool empty = false;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    SGDPH_FUZZ_CHECK(tensor.sizes[i] >= 0 && tensor.strides[i] >= 0);
    empty = empty || tensor.sizes[i] == 0;
    last += static_cast<__int128>(tensor.sizes[i] - 1) * tensor.strides[i];
  }
  SGDPH_FUZZ_CHECK(empty || last < tensor.storage_size);
}

void parse(std::string_view bytes) {
  const auto in_one_line = [](const DamagedFile& error) {
    SGDPH_FUZZ_CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
  };
  try {
    const sgdph::lab::formats::TorchFile file(bytes);
    for (const auto& [name, tensor] : file.tensors()) {
      SGDPH_FUZZ_CHECK(name.find('\n') == std::string::npos);
      check_bounds(tensor);
      try {
        const auto content = file.storage(tensor);
        SGDPH_FUZZ_CHECK(content.size() >= static_cast<size_t>(tensor.storage_size));
      } catch (const DamagedFile& error) {
        in_one_line(error);
      }
    }
  } catch (const DamagedFile& error) {
    in_one_line(error);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  parse(bytes);
  parse(sgdph::test::zip_archive({{"a/data.pkl", bytes}, {"a/data/0", std::string(24, 'x')}}));
  return 0;
}
