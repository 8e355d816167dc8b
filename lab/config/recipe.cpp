#include "config/recipe.h"

#include "base/error.h"
#include "base/files.h"
#include "base/names.h"
#include "config/builtin_recipes.h"
#include "config/optimizer_table.h"

#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <sstream>

namespace sgdph::lab {
namespace {

std::string place(const std::string& where, const toml::node& node) {
  return fmt::format("{}:{}", where, node.source().begin.line);
}

nlohmann::json to_json(const toml::node& node, const std::string& where) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* array = node.as_array()) {
    auto list = nlohmann::json::array();
    for (const auto& entry : *array) list.push_back(to_json(entry, where));
    return list;
  }
  fail("{}: tables and dates are not values of a setting", place(where, node));
}

const toml::table& table_of(const toml::node& node, const std::string& name, const std::string& where) {
  const auto* table = node.as_table();
  if (table == nullptr) fail("{}: {} must be a table, [{}]", place(where, node), name, name);
  return *table;
}

Layer layer_of(const toml::table& table, const std::string& where) {
  Layer layer;
  for (const auto& [key, node] : table) layer[std::string(key.str())] = {to_json(node, where), place(where, node)};
  Settings scratch;
  apply_layer(scratch, layer);  // refuses unknown keys and bad values where they stand
  return layer;
}

bool is_optimizer_setting(const std::string& key) {
  Settings scratch;
  for (const auto& field : fields_of(scratch)) {
    if (field.key == key) return field.part == Field::Part::Optimizer && key != "opt";
  }
  return false;
}

/// Refuses what the optimizer would silently ignore.
void check_belongs(const OptimizerInfo& info, const Layer& layer) {
  for (const auto& [key, given] : layer) {
    if (!is_optimizer_setting(key) || info.has(key)) continue;
    fail(
        "{}: {} is not a setting of {}, which has {}; give it with an optimizer that has it", given.where, key,
        info.name, fmt::join(info.keys, ", "));
  }
}

}  // namespace

Recipe parse_recipe(const std::string& text, const std::string& where) {
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail("{}:{}: {}", where, error.source().begin.line, error.description());
  }
  Recipe recipe;
  for (const auto& [name, node] : root) {
    if (name == "title") {
      recipe.title = node.value_or(std::string());
    } else if (name == "run") {
      recipe.run = layer_of(table_of(node, "run", where), where);
    } else if (name == "optimizer") {
      for (const auto& [optimizer, part] : table_of(node, "optimizer", where)) {
        const std::string key(optimizer.str());
        check_name(fmt::format("optimizer ({})", place(where, part)), key, optimizer_names());
        auto& layer = recipe.optimizers[key] = layer_of(table_of(part, "optimizer." + key, where), where);
        check_belongs(optimizer_info(key), layer);
        if (layer.count("opt") != 0) fail("{}: opt stands in [run]", layer["opt"].where);
      }
    } else {
      const std::string key(name.str());
      fail(
          "{}: unknown key '{}'{}; settings stand in [run] or [optimizer.NAME]", place(where, node), key,
          suggestion(key, {"title", "run", "optimizer"}));
    }
  }
  return recipe;
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const auto& recipe : builtin_recipes()) names.emplace_back(recipe.name);
  return names;
}

Recipe named_recipe(const std::string& name) {
  check_name("recipe", name, recipe_names());
  for (const auto& recipe : builtin_recipes()) {
    if (name == recipe.name) return parse_recipe(recipe.text, "recipe " + name);
  }
  return {};
}

Recipe read_recipe(const std::string& file) {
  return parse_recipe(read_file(file), file);
}

Settings combine(const Sources& sources) {
  Settings settings;
  const auto choose = [&](const Layer& layer) {
    if (const auto found = layer.find("opt"); found != layer.end()) apply_layer(settings, {{"opt", found->second}});
  };
  for (const auto& recipe : sources.recipes) choose(recipe.run);
  choose(sources.options);
  const auto info = optimizer_info(settings.opt);

  const auto add = [&](const Layer& layer) {
    check_belongs(info, layer);
    auto rest = layer;
    rest.erase("opt");
    apply_layer(settings, rest);
  };
  for (const auto& recipe : sources.recipes) {
    add(recipe.run);
    if (const auto found = recipe.optimizers.find(info.name); found != recipe.optimizers.end()) add(found->second);
  }
  add(sources.options);
  return settings;
}

std::string to_toml(const Settings& settings) {
  auto copy = settings;
  std::ostringstream general;
  std::ostringstream special;
  for (const auto& field : fields_of(copy)) {
    if (!field.is_set()) continue;
    auto& out = is_optimizer_setting(field.key) ? special : general;
    const auto value = field.get();
    // JSON's numbers, strings and lists are TOML's too; a whole float keeps its point.
    out << field.key << " = " << value.dump() << "\n";
  }
  return fmt::format("[run]\n{}\n[optimizer.{}]\n{}", general.str(), settings.opt, special.str());
}

}  // namespace sgdph::lab
