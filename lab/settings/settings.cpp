#include "settings/settings.h"

#include "base/error.h"
#include "base/names.h"
#include "base/text.h"

#include <fmt/ranges.h>

#include <cmath>
#include <type_traits>

namespace sgdph::lab {
namespace {

template <class T>
struct Unwrapped {
  using type = T;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using type = T;
};
template <class Pointer>
using Content = typename Unwrapped<std::remove_pointer_t<Pointer>>::type;

template <class T>
constexpr const char* kTakes = "a word";
template <>
constexpr const char* kTakes<bool> = "true or false";
template <>
constexpr const char* kTakes<int64_t> = "a whole number";
template <>
constexpr const char* kTakes<double> = "a number";
template <>
constexpr const char* kTakes<std::vector<int64_t>> = "a list of whole numbers";

template <class T>
bool has_type(const nlohmann::json& value) {
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  if constexpr (std::is_same_v<T, int64_t>) return value.is_number_integer();
  if constexpr (std::is_same_v<T, double>) return value.is_number();
  if constexpr (std::is_same_v<T, std::string>) return value.is_string();
  if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    if (!value.is_array()) return false;
    for (const auto& entry : value) {
      if (!entry.is_number_integer()) return false;
    }
    return true;
  }
  return false;
}

std::string shown(const nlohmann::json& value) {
  return value.is_string() ? fmt::format("'{}'", value.get<std::string>()) : value.dump();
}

void check_range(const Field& field, double value, const std::string& where) {
  const bool low = field.low_open ? value > field.low : value >= field.low;
  const bool high = field.high_open ? value < field.high : value <= field.high;
  if (low && high && std::isfinite(value)) return;
  const auto from = std::isfinite(field.low)
                        ? fmt::format(" {} {}", field.low_open ? "above" : "of at least", field.low)
                        : std::string();
  const auto to = std::isfinite(field.high)
                      ? fmt::format(" and {} {}", field.high_open ? "below" : "at most", field.high)
                      : std::string();
  fail("{}: {} takes a finite number{}{}, got {}", where, field.key, from, to, value);
}

/// Logs and checkpoints are JSON, which is UTF-8.
void check_text(const Field& field, const nlohmann::json& text, const std::string& where) {
  try {
    static_cast<void>(text.dump());
  } catch (const nlohmann::json::exception&) {
    fail("{}: {} is not UTF-8 text", where, field.key);
  }
}

}  // namespace

bool Field::is_flag() const {
  return std::holds_alternative<bool*>(value) || std::holds_alternative<std::optional<bool>*>(value);
}

bool Field::leaves_result_alone() const {
  return changeable && key != "epochs";
}

bool Field::is_set() const {
  return !get().is_null();
}

nlohmann::json Field::get() const {
  return std::visit(
      [](const auto* pointer) -> nlohmann::json {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(pointer)>>;
        if constexpr (std::is_same_v<T, typename Unwrapped<T>::type>) {
          return *pointer;
        } else {
          return *pointer ? nlohmann::json(**pointer) : nlohmann::json();
        }
      },
      value);
}

void Field::set(const nlohmann::json& given, const std::string& where) const {
  std::visit(
      [&](auto* pointer) {
        using T = Content<decltype(pointer)>;
        if (!has_type<T>(given)) fail("{}: {} takes {}, got {}", where, key, kTakes<T>, shown(given));
        if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int64_t>) {
          check_range(*this, given.get<double>(), where);
        }
        if constexpr (std::is_same_v<T, std::string>) {
          const auto word = given.get<std::string>();
          if (!choices.empty()) check_name(fmt::format("{} ({})", key, where), word, choices);
          if (word.find('\n') != std::string::npos) fail("{}: {} must stand on one line", where, key);
          check_text(*this, given, where);
        }
        *pointer = given.get<T>();
      },
      value);
}

nlohmann::json Field::parse(const std::string& word, const std::string& where) const {
  return std::visit(
      [&](auto* pointer) -> nlohmann::json {
        using T = Content<decltype(pointer)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return word;
        } else if constexpr (std::is_same_v<T, bool>) {
          if (word == "true" || word == "false") return word == "true";
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          auto list = nlohmann::json::array();
          if (word.empty()) return list;
          for (const auto& part : words_between_commas(word)) {
            const auto number = number_from<int64_t>(part);
            if (!number) fail("{}: takes whole numbers with commas between, got '{}'", where, word);
            list.push_back(*number);
          }
          return list;
        } else if (const auto number = number_from<T>(word)) {
          return *number;
        }
        fail("{}: takes {}, got '{}'", where, kTakes<T>, word);
      },
      value);
}

void apply_layer(Settings& settings, const Layer& layer) {
  const auto fields = fields_of(settings);
  for (const auto& [key, given] : layer) {
    const auto* found = find_field(fields, key);
    if (found == nullptr) fail("{}: unknown key '{}'{}", given.where, key, suggestion(key, field_keys()));
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

std::vector<std::string> field_keys() {
  Settings settings;
  std::vector<std::string> keys;
  for (const auto& field : fields_of(settings)) keys.push_back(field.key);
  return keys;
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
  Settings settings;
  apply_layer(settings, layer);
  return settings;
}

}  // namespace sgdph::lab
