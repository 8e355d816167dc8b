#pragma once

#include <toml++/toml.h>
#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

#include "settings/settings.h"

namespace sgdph::lab::settings {

/// Reading TOML with messages that say file and line; `where` names the file. For recipes and experiments.

toml::table parse_toml(const std::string& text, const std::string& where);

/// "file:line" of a node.
std::string toml_place(const std::string& where, const toml::node& node);
/// Refuses tables and dates.
nlohmann::json toml_value(const toml::node& node, const std::string& where);
/// Refuses what is no table.
const toml::table& table_of(const toml::node& node, const std::string& name, const std::string& where);
/// The settings of a table, keys of `others` left out; unknown keys and bad values are refused where they stand.
Layer layer_of(const toml::table& table, const std::string& where, const std::vector<std::string>& others = {});
/// The tables [optimizer.NAME]; settings the optimizer does not have are refused.
std::map<std::string, Layer> optimizer_layers(const toml::node& node, const std::string& where);

}  // namespace sgdph::lab::settings
