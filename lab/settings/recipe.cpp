#include "settings/recipe.h"

#include "base/error.h"
#include "base/files.h"
#include "base/names.h"
#include "settings/builtin_recipes.h"
#include "settings/optimizer_table.h"
#include "settings/toml_reader.h"

#include <fmt/ranges.h>

#include <sstream>

namespace sgdph::lab {
namespace {

bool is_optimizer_setting(const std::string& key) {
  Settings scratch;
  const auto fields = fields_of(scratch);
  const auto* field = find_field(fields, key);
  return field != nullptr && field->part == Field::Part::Optimizer && key != "opt";
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

std::map<std::string, Layer> optimizer_layers(const toml::node& node, const std::string& where) {
  std::map<std::string, Layer> layers;
  for (const auto& [optimizer, part] : table_of(node, "optimizer", where)) {
    const std::string key(optimizer.str());
    check_name(fmt::format("optimizer ({})", toml_place(where, part)), key, optimizer_names());
    auto& layer = layers[key] = layer_of(table_of(part, "optimizer." + key, where), where);
    check_belongs(optimizer_info(key), layer);
    if (layer.count("opt") != 0) fail("{}: opt stands in [run]", layer["opt"].where);
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
