#include "settings/toml_reader.h"

#include "base/error.h"
#include "base/escape.h"

#include <algorithm>
#include <charconv>

namespace sgdph::lab::settings {
namespace {

// toml++ takes some letters beyond ASCII outside of strings for a case that cannot be, with whatever follows from that.
// It gets to see none: each byte of them stands as ~ and two hexadecimal digits while it reads.

std::string as_ascii(std::string_view text) {
  std::string ascii;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    ascii += c == '~' || byte > 127 ? fmt::format("~{:02x}", byte) : std::string(1, c);
  }
  return ascii;
}

std::string from_ascii(std::string_view ascii) {
  std::string text;
  for (size_t i = 0; i < ascii.size(); ++i) {
    unsigned byte = 0;
    const auto* digits = ascii.data() + std::min(i + 1, ascii.size());
    const auto* end = ascii.data() + std::min(i + 3, ascii.size());
    const bool marked = ascii[i] == '~' && std::from_chars(digits, end, byte, 16).ptr == digits + 2;
    text += marked ? static_cast<char>(byte) : ascii[i];
    i += marked ? 2 : 0;
  }
  return text;
}

void restore_letters(toml::node& node) {
  if (auto* text = node.as_string()) *text = from_ascii(text->get());
  if (auto* array = node.as_array()) {
    for (auto& entry : *array) restore_letters(entry);
  }
  if (auto* table = node.as_table()) {
    for (auto&& [key, entry] : *table) restore_letters(entry);
  }
}

void check_utf8(std::string_view text, const std::string& where) {
  size_t line = 1;
  for (size_t from = 0; from < text.size(); ++line) {
    const auto end = std::min(text.find('\n', from), text.size());
    if (!is_utf8(std::string(text.substr(from, end - from)))) fail("{}:{}: not UTF-8 text", where, line);
    from = end + 1;
  }
}

}  // namespace

toml::table parse_toml(const std::string& text, const std::string& where) {
  check_utf8(text, where);
  const bool marked = text.compare(0, 3, "\xef\xbb\xbf") == 0;
  try {
    auto table = toml::parse(as_ascii(std::string_view(text).substr(marked ? 3 : 0)));
    restore_letters(table);
    return table;
  } catch (const toml::parse_error& error) {
    fail("{}:{}: {}", where, error.source().begin.line, printable(from_ascii(error.description())));
  }
}

std::string toml_place(const std::string& where, const toml::node& node) {
  return fmt::format("{}:{}", where, node.source().begin.line);
}

nlohmann::json toml_value(const toml::node& node, const std::string& where) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* array = node.as_array()) {
    auto list = nlohmann::json::array();
    for (const auto& entry : *array) list.push_back(toml_value(entry, where));
    return list;
  }
  fail("{}: tables and dates are not values of a setting", toml_place(where, node));
}

const toml::table& table_of(const toml::node& node, const std::string& name, const std::string& where) {
  const auto* table = node.as_table();
  if (table == nullptr) fail("{}: {} must be a table, [{}]", toml_place(where, node), name, name);
  return *table;
}

Layer layer_of(const toml::table& table, const std::string& where, const std::vector<std::string>& others) {
  Layer layer;
  for (const auto& [name, node] : table) {
    const auto key = from_ascii(name.str());
    if (std::find(others.begin(), others.end(), key) != others.end()) continue;
    layer[key] = {toml_value(node, where), toml_place(where, node)};
  }
  check_layer(layer);
  return layer;
}

}  // namespace sgdph::lab::settings
