#include "formats/pickle.h"

#include "formats/bytes.h"

#include <fmt/format.h>

namespace sgdph::lab::formats {

Pickle::Pickle(std::string_view bytes) {
  ByteReader reader(bytes);
  while (run_one(reader)) {
  }
  top_ = pop();
}

void Pickle::push(Kind kind, int64_t integer, std::string_view text) {
  auto& value = values_.emplace_back();
  value.kind = kind;
  value.integer = integer;
  value.text = text;
  stack_.push_back(&value);
}

Pickle::Value* Pickle::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) throw DamagedFile("the pickle takes more than it has");
  auto* value = stack_.back();
  stack_.pop_back();
  return value;
}

Pickle::Value& Pickle::last() {
  auto* value = pop();
  stack_.push_back(value);
  return *value;
}

std::vector<const Pickle::Value*> Pickle::pop_to_mark() {
  if (marks_.empty()) throw DamagedFile("the pickle has a mark too few");
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<const Value*> parts(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return parts;
}

/// Moves what follows the mark into the container before it.
void Pickle::extend(size_t extra, Kind kind) {
  std::vector<const Value*> parts;
  if (extra == 0) {
    parts = pop_to_mark();
  } else {
    parts.resize(extra);
    for (size_t i = extra; i-- > 0;) parts[i] = pop();
  }
  auto& container = last();
  if (kind == Kind::Dict && parts.size() % 2 != 0) throw DamagedFile("the pickle has a key without a value");
  // A call may make something like a container: its members do not matter to us.
  if (container.kind == Kind::Call) return;
  if (container.kind != kind) throw DamagedFile("the pickle adds to what holds nothing");
  container.parts.insert(container.parts.end(), parts.begin(), parts.end());
}

void Pickle::push_tuple(size_t size) {
  std::vector<const Value*> parts(size);
  for (size_t i = size; i-- > 0;) parts[i] = pop();
  push(Kind::Tuple);
  stack_.back()->parts = std::move(parts);
}

void Pickle::push_call(const Value* function, const Value* arguments) {
  // The one class that state dicts are made of.
  if (function->is_global("collections", "OrderedDict") && arguments->parts.empty()) return push(Kind::Dict);
  push(Kind::Call);
  stack_.back()->parts = {function, arguments};
}

/// Runs one instruction; false after the last.
bool Pickle::run_one(ByteReader& reader) {
  const auto code = static_cast<unsigned char>(reader.number(1));
  if (code == '.') return false;
  if (run_number(code, reader) || run_text(code, reader) || run_container(code) || run_memo(code, reader) ||
      run_object(code, reader)) {
    return true;
  }
  switch (code) {
    case 0x80: reader.take(1); break;  // PROTO
    case 0x95: reader.take(8); break;  // FRAME
    case '(': marks_.push_back(stack_.size()); break;
    case '0': pop(); break;
    case '1': pop_to_mark(); break;
    case '2': stack_.push_back(&last()); break;  // DUP
    default: throw DamagedFile(fmt::format("the pickle has the unknown instruction {:#04x}", code));
  }
  return true;
}

bool Pickle::run_number(unsigned char code, ByteReader& reader) {
  switch (code) {
    case 'N': push(Kind::None); return true;
    case 0x88: push(Kind::Bool, 1); return true;
    case 0x89: push(Kind::Bool, 0); return true;
    case 'K': push(Kind::Integer, static_cast<int64_t>(reader.number(1))); return true;
    case 'M': push(Kind::Integer, static_cast<int64_t>(reader.number(2))); return true;
    case 'J': push(Kind::Integer, static_cast<int32_t>(reader.number(4))); return true;
    case 'G': push(Kind::Float), reader.take(8); return true;
    case 0x8a:    // LONG1
    case 0x8b: {  // LONG4
      const auto size = reader.number(code == 0x8a ? 1 : 4);
      if (size > 8) {  // larger than any size or offset: of no use to us
        reader.take(size);
        push(Kind::Bytes);
        return true;
      }
      auto value = reader.number(size);
      const auto bits = 8 * size;
      if (bits > 0 && bits < 64 && (value >> (bits - 1)) != 0) value |= ~uint64_t{0} << bits;
      push(Kind::Integer, static_cast<int64_t>(value));
      return true;
    }
    default: return false;
  }
}

bool Pickle::run_text(unsigned char code, ByteReader& reader) {
  const auto sized = [&](Kind kind, size_t size) {
    push(kind, 0, reader.take(reader.number(size)));
    return true;
  };
  switch (code) {
    case 0x8c: return sized(Kind::Text, 1);
    case 'X': return sized(Kind::Text, 4);
    case 0x8d: return sized(Kind::Text, 8);
    case 'C':
    case 'U': return sized(Kind::Bytes, 1);
    case 'B':
    case 'T': return sized(Kind::Bytes, 4);
    case 0x8e:
    case 0x96: return sized(Kind::Bytes, 8);
    default: return false;
  }
}

bool Pickle::run_container(unsigned char code) {
  const auto marked = [&](Kind kind) {
    auto parts = pop_to_mark();
    push(kind);
    stack_.back()->parts = std::move(parts);
    return true;
  };
  switch (code) {
    case '}': push(Kind::Dict); return true;
    case ']':
    case 0x8f: push(Kind::List); return true;
    case ')': push(Kind::Tuple); return true;
    case 0x85:
    case 0x86:
    case 0x87: push_tuple(code - 0x84); return true;
    case 't': return marked(Kind::Tuple);
    case 0x91:
    case 'l': return marked(Kind::List);
    case 'a': extend(1, Kind::List); return true;
    case 'e':
    case 0x90: extend(0, Kind::List); return true;
    case 's': extend(2, Kind::Dict); return true;
    case 'u': extend(0, Kind::Dict); return true;
    default: return false;
  }
}

bool Pickle::run_memo(unsigned char code, ByteReader& reader) {
  const auto put = [&](uint64_t index) {
    memo_[index] = &last();
    return true;
  };
  const auto get = [&](uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) throw DamagedFile("the pickle refers to what it did not keep");
    stack_.push_back(found->second);
    return true;
  };
  switch (code) {
    case 'q': return put(reader.number(1));
    case 'r': return put(reader.number(4));
    case 0x94: return put(memo_.size());
    case 'h': return get(reader.number(1));
    case 'j': return get(reader.number(4));
    default: return false;
  }
}

bool Pickle::run_object(unsigned char code, ByteReader& reader) {
  switch (code) {
    case 'c': {
      push(Kind::Global, 0, reader.take_until('\n'));
      stack_.back()->name = reader.take_until('\n');
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      const auto* name = pop();
      const auto* module = pop();
      push(Kind::Global, 0, module->text);
      stack_.back()->name = name->text;
      return true;
    }
    case 'R':
    case 0x81: {  // NEWOBJ
      const auto* arguments = pop();
      push_call(pop(), arguments);
      return true;
    }
    case 0x92: {  // NEWOBJ_EX
      pop();
      const auto* arguments = pop();
      push_call(pop(), arguments);
      return true;
    }
    case 'b':  // BUILD: the attributes of an object; those of a state dict are its metadata
      pop();
      last();
      return true;
    case 'Q': {
      const auto* id = pop();
      push(Kind::Persistent);
      stack_.back()->parts = {id};
      return true;
    }
    default: return false;
  }
}

}  // namespace sgdph::lab::formats
