#include "settings/recipe.h"

#include "base/error.h"
#include "base/files.h"
#include "base/names.h"
#include "settings/renamed.h"
#include "settings/toml_reader.h"

#include <fmt/ranges.h>

#include <sstream>

namespace sgdph::lab::settings {

std::map<std::string, Layer> optimizer_layers(const toml::node& node, const std::string& where) {
  std::map<std::string, Layer> layers;
  for (const auto& [optimizer, part] : table_of(node, "optimizer", where)) {
    const std::string key(optimizer.str());
    check_name(fmt::format("optimizer ({})", toml_place(where, part)), key, optimizers::optimizer_names());
    auto& layer = layers[key] = layer_of(table_of(part, "optimizer." + key, where), where);
    if (layer.count("opt") != 0) fail("{}: opt stands in [run]", layer["opt"].where);
    Settings scratch;
    scratch.opt = key;
    apply_layer(scratch, layer);  // refuses what this optimizer does not have, and would not take
  }
  return layers;
}

Recipe parse_recipe(const std::string& text, const std::string& where) {
  const auto root = parse_toml(text, where);
  Recipe recipe;
  for (const auto& [name, node] : root) {
    if (name == "title") {
      recipe.title = node.value_or(std::string());
    } else if (name == "run") {
      recipe.run = layer_of(table_of(node, "run", where), where);
    } else if (name == "optimizer") {
      recipe.optimizers = optimizer_layers(node, where);
    } else {
      const std::string key(name.str());
      fail(
          "{}: unknown key '{}'{}; settings stand in [run] or [optimizer.NAME]", toml_place(where, node), key,
          suggestion(key, {"title", "run", "optimizer"}));
    }
  }
  return recipe;
}

std::vector<std::string> recipe_names() {
  return names_of(builtin_recipes());
}

Recipe named_recipe(const std::string& name) {
  return parse_recipe(std::string(find_named(builtin_recipes(), "recipe", name).text), "recipe " + name);
}

Recipe read_recipe(const std::string& file) {
  return parse_recipe(read_named_file(file), file);
}

Settings combine(const Sources& sources) {
  Settings settings;
  const auto choose = [&](const Layer& layer) {
    if (const auto found = layer.find("opt"); found != layer.end()) apply_layer(settings, {{"opt", found->second}});
  };
  for (const auto& recipe : sources.recipes) choose(recipe.run);
  choose(sources.options);
  optimizers::optimizer_entry(settings.opt);

  const auto add = [&](Layer layer) {
    layer.erase("opt");
    apply_layer(settings, layer);
  };
  for (const auto& recipe : sources.recipes) {
    add(recipe.run);
    if (const auto found = recipe.optimizers.find(settings.opt); found != recipe.optimizers.end()) add(found->second);
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
    auto& out = std::holds_alternative<Field::OptionSlot>(field.value) ? special : general;
    // JSON's numbers, strings and lists are TOML's too; a whole float keeps its point.
    out << field.key << " = " << field.get().dump() << "\n";
  }
  return fmt::format("[run]\n{}\n[optimizer.{}]\n{}", general.str(), settings.opt, special.str());
}

Settings read_stored_settings(const std::string& file) {
  return parse_stored_settings(read_file(file), file);
}

Settings parse_stored_settings(const std::string& text, const std::string& file) {
  const auto root = parse_toml(text, file);
  Layer layer;
  const auto add = [&](const toml::table& table) {
    for (const auto& [name, node] : table) {
      layer[std::string(name.str())] = {toml_value(node, file), toml_place(file, node)};
    }
  };
  if (const auto* run = root["run"].as_table()) add(*run);
  const auto* optimizers = root["optimizer"].as_table();
  if (optimizers != nullptr) {
    for (const auto& [name, node] : *optimizers) add(table_of(node, "optimizer." + std::string(name.str()), file));
  }
  rename_stored(layer);
  Settings settings;
  apply_layer(settings, layer);
  return settings;
}

}  // namespace sgdph::lab::settings
