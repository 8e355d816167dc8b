#include "settings/toml_reader.h"

#include "base/error.h"

#include <algorithm>

namespace sgdph::lab::settings {

toml::table parse_toml(const std::string& text, const std::string& where) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail("{}:{}: {}", where, error.source().begin.line, error.description());
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
    const std::string key(name.str());
    if (std::find(others.begin(), others.end(), key) != others.end()) continue;
    layer[key] = {toml_value(node, where), toml_place(where, node)};
  }
  check_layer(layer);
  return layer;
}

}  // namespace sgdph::lab::settings
