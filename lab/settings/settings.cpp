#include "settings/settings.h"

#include "base/error.h"
#include "base/names.h"
#include "base/text.h"
#include "settings/renamed.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace sgdph::lab::settings {
namespace {

using Kind = Field::Kind;

Kind kind_of(const bool*) {
  return Kind::Flag;
}
Kind kind_of(const int64_t*) {
  return Kind::Whole;
}
Kind kind_of(const std::optional<int64_t>*) {
  return Kind::Whole;
}
Kind kind_of(const std::optional<double>*) {
  return Kind::Number;
}
Kind kind_of(const double*) {
  return Kind::Number;
}
Kind kind_of(const std::string*) {
  return Kind::Word;
}
Kind kind_of(const std::vector<int64_t>*) {
  return Kind::Wholes;
}
Kind kind_of(const std::vector<double>*) {
  return Kind::Numbers;
}

template <class Pointer>
constexpr bool kIsOptional =
    std::is_same_v<Pointer, std::optional<int64_t>*> || std::is_same_v<Pointer, std::optional<double>*>;

const char* takes(Kind kind) {
  switch (kind) {
    case Kind::Flag: return "true or false";
    case Kind::Whole: return "a whole number";
    case Kind::Number: return "a number";
    case Kind::Word: return "a word";
    case Kind::Wholes: return "a list of whole numbers";
    case Kind::Numbers: return "a list of numbers";
  }
  return "";
}

bool is_list(const nlohmann::json& value, bool (nlohmann::json::*is_type)() const noexcept) {
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [&](const nlohmann::json& entry) { return (entry.*is_type)(); });
}

/// A number of 64 bits that would turn negative.
bool is_beyond_sign(const nlohmann::json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
}

bool has_kind(Kind kind, const nlohmann::json& value) {
  switch (kind) {
    case Kind::Flag: return value.is_boolean();
    case Kind::Whole: return value.is_number_integer() && !is_beyond_sign(value);
    case Kind::Number: return value.is_number();
    case Kind::Word: return value.is_string();
    case Kind::Wholes:
      return is_list(value, &nlohmann::json::is_number_integer) &&
             std::none_of(value.begin(), value.end(), is_beyond_sign);
    case Kind::Numbers: return is_list(value, &nlohmann::json::is_number);
  }
  return false;
}

std::string quoted(const nlohmann::json& value) {
  return value.is_string() ? fmt::format("'{}'", value.get<std::string>()) : value.dump();
}

void check_range(const Field& field, double value, const std::string& where) {
  const auto& bound = field.bound;
  if (bound.holds(value)) return;
  const auto from = std::isfinite(bound.low)
                        ? fmt::format(" {} {}", bound.low_open ? "above" : "of at least", bound.low)
                        : std::string();
  const auto to = std::isfinite(bound.high)
                      ? fmt::format(" and {} {}", bound.high_open ? "below" : "at most", bound.high)
                      : std::string();
  fail("{}: {} takes a finite number{}{}, got {}", where, field.key, from, to, value);
}

void check_word(const Field& field, const nlohmann::json& given, const std::string& where) {
  const auto word = given.get<std::string>();
  if (!field.choices.empty()) check_name(fmt::format("{} ({})", field.key, where), word, field.choices);
  // Where a name of a file ends for the system, the rest would go unread.
  if (word.find('\0') != std::string::npos) fail("{}: {} holds a character of number 0", where, field.key);
  if (word.find('\n') != std::string::npos) fail("{}: {} must stand on one line", where, field.key);
  try {
    static_cast<void>(given.dump());  // logs and checkpoints are JSON, which is UTF-8
  } catch (const nlohmann::json::exception&) {
    fail("{}: {} is not UTF-8 text", where, field.key);
  }
}

void check_numbers(const Field& field, const nlohmann::json& given, const std::string& where) {
  for (const auto& number : given) check_range(field, number.get<double>(), where);
  const auto* slot = std::get_if<Field::OptionSlot>(&field.value);
  const auto* like = slot == nullptr ? nullptr : std::get_if<std::vector<double>>(&slot->like);
  if (like != nullptr && given.size() != like->size()) {
    fail("{}: {} takes {} numbers, got {}", where, field.key, like->size(), given.dump());
  }
}

/// The numbers of a list on the command line.
template <class Number>
nlohmann::json parse_list(const std::string& word, const std::string& where, const char* what) {
  auto list = nlohmann::json::array();
  if (word.empty()) return list;
  for (const auto& part : words_between_commas(word)) {
    const auto number = number_from<Number>(part);
    if (!number) fail("{}: takes {} with commas between, got '{}'", where, what, word);
    list.push_back(*number);
  }
  return list;
}

[[noreturn]] void refuse_key(const Settings& settings, const std::string& key, const std::string& where) {
  Settings scratch;
  const auto all = fields_of_all_optimizers(scratch);
  if (find_field(all, key) == nullptr) {
    std::vector<std::string> keys;
    for (const auto& field : all) keys.push_back(field.key);
    const auto now = renamed(key);
    fail("{}: unknown key '{}'{}", where, key, now ? fmt::format("; it is {} now", *now) : suggestion(key, keys));
  }
  fail(
      "{}: {} is not a setting of {}, which has {}; give it with an optimizer that has it", where, key, settings.opt,
      fmt::join(names_of(optimizers::optimizer_entry(settings.opt).options), ", "));
}

}  // namespace

Kind Field::kind() const {
  if (const auto* slot = std::get_if<OptionSlot>(&value)) {
    return std::visit([](const auto& content) { return kind_of(&content); }, slot->like);
  }
  return std::visit(
      [](const auto& pointer) {
        if constexpr (std::is_pointer_v<std::decay_t<decltype(pointer)>>) {
          return kind_of(pointer);
        } else {
          return Kind::Word;
        }
      },
      value);
}

nlohmann::json Field::get() const {
  if (const auto* slot = std::get_if<OptionSlot>(&value)) {
    const auto found = slot->values->find(key);
    return found == slot->values->end() ? nlohmann::json() : found->second;
  }
  return std::visit(
      [](const auto& pointer) -> nlohmann::json {
        using T = std::decay_t<decltype(pointer)>;
        if constexpr (std::is_same_v<T, OptionSlot>) {
          return {};
        } else if constexpr (kIsOptional<T>) {
          return *pointer ? nlohmann::json(**pointer) : nlohmann::json();
        } else {
          return *pointer;
        }
      },
      value);
}

void Field::set(const nlohmann::json& given, const std::string& where) const {
  const auto own = kind();
  if (!has_kind(own, given)) fail("{}: {} takes {}, got {}", where, key, takes(own), quoted(given));
  if (own == Kind::Number || own == Kind::Whole) check_range(*this, given.get<double>(), where);
  if (own == Kind::Numbers || own == Kind::Wholes) check_numbers(*this, given, where);
  if (own == Kind::Word) check_word(*this, given, where);
  if (const auto* slot = std::get_if<OptionSlot>(&value)) {
    // A whole number is a number: records read the same however it was written.
    (*slot->values)[key] = own == Kind::Number ? nlohmann::json(given.get<double>()) : given;
    return;
  }
  std::visit(
      [&](const auto& pointer) {
        using T = std::decay_t<decltype(pointer)>;
        if constexpr (kIsOptional<T>) {
          *pointer = given.get<typename std::remove_pointer_t<T>::value_type>();
        } else if constexpr (std::is_pointer_v<T>) {
          *pointer = given.get<std::remove_pointer_t<T>>();
        }
      },
      value);
}

void Field::clear() const {
  if (const auto* slot = std::get_if<OptionSlot>(&value)) slot->values->erase(key);
  std::visit(
      [](const auto& pointer) {
        if constexpr (std::is_pointer_v<std::decay_t<decltype(pointer)>>) *pointer = {};
      },
      value);
}

nlohmann::json Field::parse(const std::string& word, const std::string& where) const {
  const auto own = kind();
  if (own == Kind::Word) return word;
  if (own == Kind::Flag && (word == "true" || word == "false")) return word == "true";
  if (own == Kind::Wholes) return parse_list<int64_t>(word, where, "whole numbers");
  if (own == Kind::Numbers) return parse_list<double>(word, where, "numbers");
  if (own == Kind::Whole) {
    if (const auto number = number_from<int64_t>(word)) return *number;
  } else if (own == Kind::Number) {
    if (const auto number = number_from<double>(word)) return *number;
  }
  fail("{}: takes {}, got '{}'", where, takes(own), word);
}

std::string Field::shown(const nlohmann::json& one) const {
  return !zero_text.empty() && one == 0 ? zero_text : plain_text(one);
}

void apply_layer(Settings& settings, const Layer& layer) {
  if (const auto chosen = layer.find("opt"); chosen != layer.end()) {
    const auto fields = fields_of(settings);
    find_field(fields, "opt")->set(chosen->second.value, chosen->second.where);
  }
  const auto fields = fields_of(settings);
  for (const auto& [key, given] : layer) {
    const auto* found = find_field(fields, key);
    if (found == nullptr) refuse_key(settings, key, given.where);
    found->set(given.value, given.where);
  }
}

void check_layer(const Layer& layer) {
  Settings scratch;
  const auto all = fields_of_all_optimizers(scratch);
  for (const auto& [key, given] : layer) {
    const auto* found = find_field(all, key);
    if (found == nullptr) refuse_key(scratch, key, given.where);
    found->set(given.value, given.where);
  }
}

const Field* find_field(const std::vector<Field>& fields, const std::string& key) {
  for (const auto& field : fields) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

std::string plain_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

nlohmann::json to_json(const Settings& settings) {
  auto copy = settings;
  auto json = nlohmann::json::object();
  for (const auto& field : fields_of(copy)) {
    if (field.is_set()) json[field.key] = field.get();
  }
  return json;
}

Settings settings_from_json(const nlohmann::json& json, const std::string& where) {
  if (!json.is_object()) fail("{}: no settings", where);
  Layer layer;
  for (const auto& [key, value] : json.items()) layer[key] = {value, where};
  rename_stored(layer);
  Settings settings;
  apply_layer(settings, layer);
  return settings;
}

}  // namespace sgdph::lab::settings
