#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sgdph::lab::formats {

class ByteReader;

/// What a Python pickle says, as data (protocols 2 to 5; the format is described in Python's pickletools.py). Nothing
/// is imported and nothing is run: a class is its name, a call its function and arguments, so a file cannot do harm,
/// and objects we know nothing about (an argparse.Namespace beside the weights) are no obstacle. Values live in one
/// array and refer to each other by pointer; `bytes` must outlive them.
class Pickle {
 public:
  enum class Kind { None, Bool, Integer, Float, Text, Bytes, Tuple, List, Dict, Global, Call, Persistent };

  struct Value {
    Kind kind = Kind::None;
    int64_t integer = 0;              ///< of Bool and Integer
    std::string_view text;            ///< of Text and Bytes; the module of Global
    std::string_view name;            ///< of Global
    std::vector<const Value*> parts;  ///< members; keys and values in turn; function and arguments; the persistent id

    bool is_global(std::string_view module, std::string_view class_name) const {
      return kind == Kind::Global && text == module && name == class_name;
    }
  };

  explicit Pickle(std::string_view bytes);
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;
  const Value& top() const { return *top_; }

 private:
  bool run_one(ByteReader& reader);
  bool run_number(unsigned char code, ByteReader& reader);
  bool run_text(unsigned char code, ByteReader& reader);
  bool run_container(unsigned char code);
  bool run_memo(unsigned char code, ByteReader& reader);
  bool run_object(unsigned char code, ByteReader& reader);

  void push(Kind kind, int64_t integer = 0, std::string_view text = {});
  void push_call(const Value* function, const Value* arguments);
  void push_tuple(size_t size);
  Value* pop();
  Value& last();
  std::vector<const Value*> pop_to_mark();
  void extend(size_t extra, Kind kind);

  std::deque<Value> values_;
  std::vector<Value*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Value*> memo_;
  const Value* top_ = nullptr;
};

}  // namespace sgdph::lab::formats
