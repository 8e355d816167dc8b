#include "detail/option_fields.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cctype>
#include <cstring>

namespace sgdph::detail {
namespace {

std::string lower(std::string text) {
  for (auto& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

std::string quoted_choices(const FieldNote& note) {
  std::string text;
  for (size_t i = 0; i < note.choices.count; ++i) {
    if (i > 0) text += i + 1 == note.choices.count ? " or " : ", ";
    text += '"' + (note.enumerated ? lower(note.choices.first[i]) : note.choices.first[i]) + '"';
  }
  return text;
}

/// Sees each option as a value; tensors, lists of whole numbers and of words are no options.
class OptionVisitor : public FieldVisitor {
 protected:
  using FieldVisitor::field;
  void field(const char*, at::Tensor&, const FieldNote&) final { refuse(); }
  void field(const char*, std::vector<int64_t>&, const FieldNote&) final { refuse(); }
  void field(const char*, std::vector<std::string>&, const FieldNote&) final { refuse(); }

 private:
  static void refuse() { TORCH_INTERNAL_ASSERT(false, "an option of an optimizer is a number, a flag or a word"); }
};

class Checker final : public OptionVisitor {
 public:
  explicit Checker(const std::string& where) : where_(where) {}

 private:
  using OptionVisitor::field;
  void field(const char*, bool&, const FieldNote&) override {}
  void field(const char* name, int64_t& value, const FieldNote& note) override {
    if (note.optional && !note.present) return;
    if (note.enumerated) {
      TORCH_CHECK(
          value >= 0 && value < static_cast<int64_t>(note.choices.count), where_, ": ", name,
          " must be one of its named values, ", quoted_choices(note), ", got number ", value);
    } else {
      TORCH_CHECK(
          note.bound.holds(static_cast<double>(value)), where_, ": ", name, " must ", note.bound.text(/*whole=*/true),
          ", got ", value);
    }
  }
  void field(const char* name, double& value, const FieldNote& note) override {
    if (!note.optional || note.present) check_number(name, value, note);
  }
  void field(const char* name, std::string& value, const FieldNote& note) override {
    if ((note.optional && !note.present) || note.choices.count == 0) return;
    TORCH_CHECK(
        std::find(note.choices.begin(), note.choices.end(), value) != note.choices.end(), where_, ": ", name,
        " must be ", quoted_choices(note), ", got \"", value, "\"");
  }
  void field(const char* name, std::vector<double>& value, const FieldNote& note) override {
    for (size_t i = 0; i < value.size(); ++i) {
      if (!note.bound.holds(value[i])) check_number(name + ("[" + std::to_string(i) + "]"), value[i], note);
    }
  }

  template <class Name>
  void check_number(const Name& name, double value, const FieldNote& note) {
    TORCH_CHECK(note.bound.holds(value), where_, ": ", name, " must ", note.bound.text(), ", got ", value);
  }

  const std::string& where_;
};

/// Hands every field on as a value.
class ValueReader : public OptionVisitor {
 protected:
  virtual void value(const char* name, OptionValue value, const FieldNote& note) = 0;

 private:
  using OptionVisitor::field;
  void field(const char* name, bool& content, const FieldNote& note) final { value(name, content, note); }
  void field(const char* name, int64_t& content, const FieldNote& note) final {
    if (!note.enumerated) {
      value(name, content, note);
    } else {
      const bool known = content >= 0 && content < static_cast<int64_t>(note.choices.count);
      value(name, known ? lower(note.choices.first[content]) : std::to_string(content), note);
    }
  }
  void field(const char* name, double& content, const FieldNote& note) final { value(name, content, note); }
  void field(const char* name, std::string& content, const FieldNote& note) final { value(name, content, note); }
  void field(const char* name, std::vector<double>& content, const FieldNote& note) final {
    value(name, content, note);
  }
};

struct Describer final : public ValueReader {
  std::vector<OptionInfo> found;

  void value(const char* name, OptionValue content, const FieldNote& note) override {
    OptionInfo info;
    info.name = name;
    info.help = note.help;
    info.value = std::move(content);
    info.unset = note.optional && !note.present;
    info.shared = note.shared;
    info.enumerated = note.enumerated;
    info.bound = note.bound;
    for (const auto* choice : note.choices) info.choices.push_back(note.enumerated ? lower(choice) : choice);
    found.push_back(std::move(info));
  }
};

struct ValuesReader final : public ValueReader {
  OptionValues found;

  void value(const char* name, OptionValue content, const FieldNote& note) override {
    if (note.present) found.emplace(name, std::move(content));
  }
};

struct SharedReader final : public ValueReader {
  std::vector<std::pair<const char*, std::optional<OptionValue>>> found;

  void value(const char* name, OptionValue content, const FieldNote& note) override {
    if (note.shared) found.emplace_back(name, note.present ? std::optional(std::move(content)) : std::nullopt);
  }
};

/// The bits of values, one after the other.
class RawReader final : public OptionVisitor {
 public:
  RawReader(std::vector<uint64_t>& values, bool only_shared) : values_(values), only_shared_(only_shared) {}

 private:
  using OptionVisitor::field;
  void field(const char*, bool& value, const FieldNote& note) override { append(static_cast<uint64_t>(value), note); }
  void field(const char*, int64_t& value, const FieldNote& note) override {
    append(static_cast<uint64_t>(value), note);
  }
  void field(const char*, double& value, const FieldNote& note) override { append(bits_of(value), note); }
  void field(const char*, std::string& value, const FieldNote& note) override {
    append(value.size(), note);
    for (const char letter : value) append(static_cast<unsigned char>(letter), note);
  }
  void field(const char*, std::vector<double>& value, const FieldNote& note) override {
    append(value.size(), note);
    for (const double number : value) append(bits_of(number), note);
  }

  static uint64_t bits_of(double value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
  }
  void append(uint64_t bits, const FieldNote& note) {
    if (only_shared_ && !note.shared) return;
    if (note.optional) values_.push_back(note.present ? 1 : 0);
    values_.push_back(bits);
  }

  std::vector<uint64_t>& values_;
  bool only_shared_;
};

class Assigner final : public OptionVisitor {
 public:
  Assigner(const OptionValues& values, const std::string& where) : values_(values), where_(where) {}

  void check_all_used() const {
    for (const auto& [name, value] : values_) {
      TORCH_CHECK(
          std::find(names_.begin(), names_.end(), name) != names_.end(), where_, ": there is no option '", name, "'");
    }
  }

 private:
  using OptionVisitor::field;
  void presence(const char* name, bool& present) override { present = present || values_.count(name) != 0; }
  void field(const char* name, bool& value, const FieldNote&) override { take(name, value, "true or false"); }
  void field(const char* name, int64_t& value, const FieldNote& note) override {
    if (!note.enumerated) {
      take(name, value, "a whole number");
      return;
    }
    std::string word;
    if (!take(name, word, "a word")) return;
    const auto found = std::find_if(
        note.choices.begin(), note.choices.end(), [&](const char* choice) { return lower(choice) == lower(word); });
    TORCH_CHECK(
        found != note.choices.end(), where_, ": ", name, " must be ", quoted_choices(note), ", got \"", word, "\"");
    value = found - note.choices.begin();
  }
  void field(const char* name, double& value, const FieldNote&) override {
    const auto given = values_.find(name);
    if (given != values_.end() && std::holds_alternative<int64_t>(given->second)) {
      names_.emplace_back(name);
      value = static_cast<double>(std::get<int64_t>(given->second));
    } else {
      take(name, value, "a number");
    }
  }
  void field(const char* name, std::string& value, const FieldNote&) override { take(name, value, "a word"); }
  void field(const char* name, std::vector<double>& value, const FieldNote&) override {
    const auto count = value.size();
    if (!take(name, value, "numbers")) return;
    TORCH_CHECK(value.size() == count, where_, ": ", name, " takes ", count, " numbers, got ", value.size());
  }

  template <class T>
  bool take(const char* name, T& value, const char* kind) {
    names_.emplace_back(name);
    const auto given = values_.find(name);
    if (given == values_.end()) return false;
    const auto* content = std::get_if<T>(&given->second);
    TORCH_CHECK(content != nullptr, where_, ": ", name, " takes ", kind, ", got ", to_string(given->second));
    value = *content;
    return true;
  }

  const OptionValues& values_;
  const std::string& where_;
  std::vector<std::string> names_;
};

}  // namespace

void check_fields(Fields& options, const std::string& where) {
  Checker checker(where);
  options.visit(checker);
}

std::vector<OptionInfo> describe_fields(Fields& options) {
  Describer describer;
  options.visit(describer);
  return std::move(describer.found);
}

OptionValues values_of(Fields& options) {
  ValuesReader reader;
  options.visit(reader);
  return std::move(reader.found);
}

void assign_values(Fields& options, const OptionValues& values, const std::string& where) {
  Assigner assigner(values, where);
  options.visit(assigner);
  assigner.check_all_used();
}

void append_raw_values(const Fields& options, std::vector<uint64_t>& values, bool only_shared) {
  RawReader reader(values, only_shared);
  // A visitor may change fields; this one does not.
  const_cast<Fields&>(options).visit(reader);
}

std::vector<std::pair<const char*, std::optional<OptionValue>>> shared_values(Fields& options) {
  SharedReader reader;
  options.visit(reader);
  return std::move(reader.found);
}

}  // namespace sgdph::detail
