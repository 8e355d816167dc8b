#pragma once

#include "formats/zip_file.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sgdph::lab::formats {

/// Of what torch.save names DoubleStorage and so on.
enum class ElementType { Double, Float, Half, BFloat16, Long, Int, Short, Char, Byte, Bool };

/// A tensor as a file of torch.save describes it: a piece of a storage, which is a member of the archive.
struct StoredTensor {
  std::string storage;
  ElementType type = ElementType::Float;
  int64_t storage_size = 0;  ///< elements
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
};

/// A state dict in the format of torch.save since torch 1.6: a ZIP archive of a pickle and of storages. LibTorch
/// 1.13's pickle_load does not read them: a state dict, which carries metadata, comes out as None, and a dict of one
/// entry is an unknown opcode. What is wrong with the bytes is a DamagedFile. `bytes` must outlive this.
class TorchFile {
 public:
  explicit TorchFile(std::string_view bytes);

  /// By name. A dict around them under "state_dict" or "model" is taken off, and so is a "module." that all names have.
  /// Every element is within its storage.
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  /// The elements of the tensor's storage, `storage_size` of them; the archive promises no alignment.
  std::string_view storage(const StoredTensor& tensor) const;

 private:
  ZipFile archive_;
  std::map<std::string, StoredTensor> tensors_;
};

}  // namespace sgdph::lab::formats
