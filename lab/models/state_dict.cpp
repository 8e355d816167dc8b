#include "models/state_dict.h"

#include "base/error.h"
#include "formats/torch_file.h"

#include <ATen/Functions.h>
#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <string_view>

namespace sgdph::lab::models {
namespace {

using StoredTensors = std::map<std::string, formats::StoredTensor>;

constexpr std::string_view kBatchCounter = "num_batches_tracked";

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Adds parameters and buffers by name, module by module, as Python's state_dict() orders them.
void collect(const torch::nn::Module& module, const std::string& prefix, NamedTensors& tensors) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    tensors.emplace_back(prefix + item.key(), item.value());
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) {
    if (item.value().defined()) tensors.emplace_back(prefix + item.key(), item.value());
  }
  for (const auto& child : module.named_children()) collect(*child.value(), prefix + child.key() + ".", tensors);
}

NamedTensors named_tensors(const torch::nn::Module& model) {
  NamedTensors tensors;
  collect(model, "", tensors);
  return tensors;
}

bool is_batch_counter(std::string_view name) {
  return name.size() >= kBatchCounter.size() && name.substr(name.size() - kBatchCounter.size()) == kBatchCounter;
}

at::ScalarType dtype_of(formats::ElementType type) {
  switch (type) {
    case formats::ElementType::Double: return at::kDouble;
    case formats::ElementType::Float: return at::kFloat;
    case formats::ElementType::Half: return at::kHalf;
    case formats::ElementType::BFloat16: return at::kBFloat16;
    case formats::ElementType::Long: return at::kLong;
    case formats::ElementType::Int: return at::kInt;
    case formats::ElementType::Short: return at::kShort;
    case formats::ElementType::Char: return at::kChar;
    case formats::ElementType::Byte: return at::kByte;
    case formats::ElementType::Bool: return at::kBool;
  }
  return at::ScalarType::Undefined;
}

/// The values of stored tensors; those that share a storage in the file share the one made here.
class TensorReader {
 public:
  explicit TensorReader(const formats::TorchFile& file) : file_(file) {}

  at::Tensor read(const formats::StoredTensor& tensor) {
    const auto dtype = dtype_of(tensor.type);
    auto& storage = storages_[{tensor.storage, dtype}];
    if (!storage.defined() || storage.numel() != tensor.storage_size) {
      const auto bytes = file_.storage(tensor);
      storage = at::empty({tensor.storage_size}, dtype);
      if (!bytes.empty()) std::memcpy(storage.data_ptr(), bytes.data(), bytes.size());
    }
    return storage.as_strided(tensor.sizes, tensor.strides, tensor.offset);
  }

 private:
  const formats::TorchFile& file_;
  std::map<std::pair<std::string, at::ScalarType>, at::Tensor> storages_;
};

std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size()));
  return fmt::format("{}{}", fmt::join(names.begin(), end, ", "), names.size() > kShown ? ", ..." : "");
}

void check_names(const NamedTensors& targets, const StoredTensors& stored, const std::string& where) {
  std::vector<std::string> missing, unexpected;
  std::set<std::string> wanted;
  for (const auto& [name, tensor] : targets) {
    wanted.insert(name);
    if (stored.count(name) == 0 && !is_batch_counter(name)) missing.push_back(name);
  }
  for (const auto& [name, tensor] : stored) {
    if (wanted.count(name) == 0) unexpected.push_back(name);
  }
  if (missing.empty() && unexpected.empty()) return;
  std::vector<std::string> parts;
  if (!missing.empty()) parts.push_back(fmt::format("{} missing ({})", missing.size(), some_of(missing)));
  if (!unexpected.empty()) parts.push_back(fmt::format("{} unexpected ({})", unexpected.size(), some_of(unexpected)));
  fail(
      "{} is of another model: of the {} tensors of this one, {}; choose the model, form and norm it was saved from",
      where, targets.size(), fmt::join(parts, ", "));
}

void check_tensor(
    const std::string& name, const at::Tensor& target, const formats::StoredTensor& stored, const std::string& where) {
  if (target.sizes() != at::IntArrayRef(stored.sizes)) {
    fail(
        "{}: tensor '{}' has the shape [{}] where the model has [{}]; choose the width, classes and input channels it "
        "was saved with",
        where, name, fmt::join(stored.sizes, ", "), fmt::join(target.sizes(), ", "));
  }
  const auto dtype = dtype_of(stored.type);
  const bool both_floating = target.is_floating_point() && c10::isFloatingType(dtype);
  if (both_floating || target.scalar_type() == dtype) return;
  fail(
      "{}: tensor '{}' has the type {} where the model has {}", where, name, c10::toString(dtype),
      c10::toString(target.scalar_type()));
}

void load(torch::nn::Module& model, const std::string& bytes, const std::string& where) {
  const formats::TorchFile file(bytes);
  TensorReader reader(file);
  const auto targets = named_tensors(model);
  check_names(targets, file.tensors(), where);
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  for (const auto& [name, target] : targets) {
    const auto found = file.tensors().find(name);
    if (found == file.tensors().end()) continue;
    check_tensor(name, target, found->second, where);
    copies.emplace_back(target, reader.read(found->second));
  }
  torch::NoGradGuard no_grad;
  for (auto& [target, source] : copies) target.copy_(source);
}

/// As a storage of its own on the CPU, in the usual order.
at::Tensor compact(const at::Tensor& tensor) {
  auto plain = tensor.detach().cpu().contiguous();
  return plain.storage().nbytes() == plain.nbytes() ? plain : plain.clone();
}

}  // namespace

std::string save_state_dict(const torch::nn::Module& model) {
  c10::Dict<std::string, at::Tensor> dict;
  for (const auto& [name, tensor] : named_tensors(model)) dict.insert(name, compact(tensor));

  // Not pickle_save: it notes the dict's type for TorchScript, which torch.load refuses where it loads weights only.
  std::string pickled;
  torch::jit::Pickler pickler(
      [&](const char* data, size_t size) { pickled.append(data, size); }, /*tensor_table=*/nullptr,
      /*type_renamer=*/nullptr, /*memoized_class_types=*/nullptr, /*get_tensor_id=*/nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(dict);
  pickler.stop();

  std::string bytes;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return size;
  });
  writer.writeRecord("data.pkl", pickled.data(), pickled.size());
  size_t index = 0;
  for (const auto& tensor : pickler.tensorData()) {
    const auto data = torch::jit::getWriteableTensorData(tensor);
    writer.writeRecord("data/" + std::to_string(index++), data.data(), data.sizeInBytes());
  }
  writer.writeEndOfFile();
  return bytes;
}

void load_state_dict(torch::nn::Module& model, const std::string& bytes, const std::string& where) {
  try {
    load(model, bytes, where);
  } catch (const formats::DamagedFile& error) {
    fail("{} cannot be loaded: {}", where, error.what());
  } catch (const c10::Error& error) {
    fail("{} cannot be loaded: {}", where, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    fail("{} cannot be loaded: not enough memory", where);
  }
}

}  // namespace sgdph::lab::models
