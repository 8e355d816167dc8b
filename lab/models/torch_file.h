#pragma once

#include "models/pickle.h"
#include "models/zip_file.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sgdph::lab {

/// A tensor as a file of torch.save describes it: a piece of a storage, which is a member of the archive.
struct StoredTensor {
  std::string storage;
  at::ScalarType dtype = at::kFloat;
  int64_t storage_size = 0;
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
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  /// The values; tensors that share a storage in the file share the one returned.
  at::Tensor read(const StoredTensor& tensor);

 private:
  ZipFile archive_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::pair<std::string, at::ScalarType>, at::Tensor> storages_;
};

}  // namespace sgdph::lab
