#include "formats/torch_file.h"

#include "base/escape.h"
#include "formats/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sgdph::lab::formats {
namespace {

using Kind = Pickle::Kind;
using Value = Pickle::Value;

constexpr std::string_view kZipStart = "PK\x03\x04";
/// How torch.save began a file up to torch 1.5: a pickled magic number.
constexpr std::string_view kLegacyStart = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::string_view kModulePrefix = "module.";

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

struct ElementRow {
  std::string_view storage;
  ElementType type;
  size_t bytes;
};

constexpr std::array kElements{
    ElementRow{"DoubleStorage", ElementType::Double, 8}, ElementRow{"FloatStorage", ElementType::Float, 4},
    ElementRow{"HalfStorage", ElementType::Half, 2},     ElementRow{"BFloat16Storage", ElementType::BFloat16, 2},
    ElementRow{"LongStorage", ElementType::Long, 8},     ElementRow{"IntStorage", ElementType::Int, 4},
    ElementRow{"ShortStorage", ElementType::Short, 2},   ElementRow{"CharStorage", ElementType::Char, 1},
    ElementRow{"ByteStorage", ElementType::Byte, 1},     ElementRow{"BoolStorage", ElementType::Bool, 1}};

ElementType element_type(const Value& storage) {
  for (const auto& row : kElements) {
    if (row.storage == storage.name) return row.type;
  }
  throw DamagedFile(fmt::format("it holds a tensor of unknown type '{}'", printable(storage.name)));
}

size_t element_bytes(ElementType type) {
  return std::find_if(kElements.begin(), kElements.end(), [&](const auto& row) { return row.type == type; })->bytes;
}

const Value& part(const Value& value, size_t index, Kind kind) {
  if (index >= value.parts.size() || value.parts[index]->kind != kind) {
    throw DamagedFile("a tensor's description is damaged");
  }
  return *value.parts[index];
}

std::vector<int64_t> integers(const Value& tuple) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < tuple.parts.size(); ++i) values.push_back(part(tuple, i, Kind::Integer).integer);
  return values;
}

/// Every element within its storage, all numbers in range.
void check_bounds(const StoredTensor& tensor) {
  bool good = tensor.offset >= 0 && tensor.storage_size >= 0 && tensor.sizes.size() == tensor.strides.size();
  int64_t last = tensor.offset;
  int64_t elements = 1;
  for (size_t i = 0; good && i < tensor.sizes.size(); ++i) {
    int64_t span = 0;
    good = tensor.sizes[i] >= 0 && tensor.strides[i] >= 0 &&
           !__builtin_mul_overflow(tensor.sizes[i] > 0 ? tensor.sizes[i] - 1 : 0, tensor.strides[i], &span) &&
           !__builtin_add_overflow(last, span, &last) && !__builtin_mul_overflow(elements, tensor.sizes[i], &elements);
  }
  if (!good || (elements > 0 && last >= tensor.storage_size)) throw DamagedFile("a tensor reaches beyond its storage");
}

/// The tensor that a value describes, if it does: _rebuild_tensor_v2(storage, offset, sizes, strides, ...), or a
/// parameter around it.
bool as_tensor(const Value& value, StoredTensor& tensor) {
  if (value.kind != Kind::Call) return false;
  const auto& function = *value.parts[0];
  const auto& arguments = *value.parts[1];
  if (function.is_global("torch._utils", "_rebuild_parameter")) {
    const auto& inner = part(arguments, 0, Kind::Call);
    return inner.parts[0]->is_global("torch._utils", "_rebuild_tensor_v2") && as_tensor(inner, tensor);
  }
  if (!function.is_global("torch._utils", "_rebuild_tensor_v2")) return false;
  // ("storage", its type, its name, the device, its size)
  const auto& storage = part(part(arguments, 0, Kind::Persistent), 0, Kind::Tuple);
  tensor.type = element_type(part(storage, 1, Kind::Global));
  tensor.storage = part(storage, 2, Kind::Text).text;
  tensor.storage_size = part(storage, 4, Kind::Integer).integer;
  tensor.offset = part(arguments, 1, Kind::Integer).integer;
  tensor.sizes = integers(part(arguments, 2, Kind::Tuple));
  tensor.strides = integers(part(arguments, 3, Kind::Tuple));
  check_bounds(tensor);
  return true;
}

const Value* find_dict(const Value& dict, std::string_view key) {
  const Value* found = nullptr;
  for (size_t i = 0; i + 1 < dict.parts.size(); i += 2) {
    const auto& name = *dict.parts[i];
    if (name.kind == Kind::Text && name.text == key && dict.parts[i + 1]->kind == Kind::Dict) found = dict.parts[i + 1];
  }
  return found;
}

/// The tensors of the state dict by name.
std::map<std::string, StoredTensor> stored_tensors(const Value& top) {
  if (top.kind != Kind::Dict) throw DamagedFile("it holds no dict of tensors; save model.state_dict() from Python");
  const auto* dict = find_dict(top, "state_dict");
  if (dict == nullptr) dict = find_dict(top, "model");
  if (dict == nullptr) dict = &top;
  std::map<std::string, StoredTensor> tensors;
  bool prefixed = !dict->parts.empty();
  for (size_t i = 0; i + 1 < dict->parts.size(); i += 2) {
    const auto& key = *dict->parts[i];
    StoredTensor tensor;
    // Names come to stand in messages, which are one line.
    if (key.kind != Kind::Text || has_control_character(key.text)) {
      throw DamagedFile("a key of its dict is not a name; save model.state_dict() from Python");
    }
    if (!as_tensor(*dict->parts[i + 1], tensor)) {
      throw DamagedFile(fmt::format("its entry '{}' is not a tensor; save model.state_dict() from Python", key.text));
    }
    prefixed = prefixed && starts_with(key.text, kModulePrefix);
    tensors[std::string(key.text)] = std::move(tensor);
  }
  if (!prefixed) return tensors;
  std::map<std::string, StoredTensor> stripped;
  for (auto& [name, tensor] : tensors) stripped[name.substr(kModulePrefix.size())] = std::move(tensor);
  return stripped;
}

/// The same bytes, if they begin as they should.
std::string_view checked_start(std::string_view bytes) {
  if (starts_with(bytes, kLegacyStart)) {
    throw DamagedFile(
        "it has the format of torch.save before torch 1.6; load it in Python and save it again with torch >= 1.6");
  }
  if (!starts_with(bytes, kZipStart)) {
    throw DamagedFile("it is not a file of torch.save; save model.state_dict() from Python");
  }
  return bytes;
}

}  // namespace

TorchFile::TorchFile(std::string_view bytes) : archive_(checked_start(bytes)) {
  if (archive_.contains(archive_.folder() + "/constants.pkl")) {
    throw DamagedFile("it is a TorchScript archive; save model.state_dict() with torch.save from Python");
  }
  const Pickle pickle(archive_.read(archive_.folder() + "/data.pkl"));
  tensors_ = stored_tensors(pickle.top());
}

std::string_view TorchFile::storage(const StoredTensor& tensor) const {
  const auto bytes = archive_.read(archive_.folder() + "/data/" + tensor.storage);
  const auto size = element_bytes(tensor.type);
  if (bytes.size() % size != 0) throw DamagedFile("a storage ends within an element");
  if (bytes.size() / size != static_cast<uint64_t>(tensor.storage_size)) {
    throw DamagedFile(fmt::format("its storage '{}' has another size than a tensor says", printable(tensor.storage)));
  }
  return bytes;
}

}  // namespace sgdph::lab::formats
