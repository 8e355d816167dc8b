#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/embedded.h"
#include "settings/settings.h"

namespace sgdph::lab::settings {

/// Settings from a TOML file: a table [run] for every optimizer, and tables [optimizer.NAME] that count only when that
/// optimizer is chosen. Unknown keys are errors.
struct Recipe {
  std::string title;
  Layer run;
  std::map<std::string, Layer> optimizers;
};

/// `where` names the source in messages.
Recipe parse_recipe(const std::string& text, const std::string& where);
/// The files of lab/settings/recipes, compiled in.
const std::vector<EmbeddedFile>& builtin_recipes();
/// A recipe that comes with the lab, by name.
Recipe named_recipe(const std::string& name);
std::vector<std::string> recipe_names();
Recipe read_recipe(const std::string& file);

/// Where settings come from; a later source overrides an earlier one, and within a source the optimizer's table the
/// general one.
struct Sources {
  std::vector<Recipe> recipes;
  Layer options;
};

/// Settings as given, unresolved. Refuses an option that the chosen optimizer does not have.
Settings combine(const Sources& sources);

/// A recipe file with exactly these settings, which `read_recipe` and `combine` give back.
std::string to_toml(const Settings& settings);

/// The settings of a stored run, as `to_toml` wrote them, perhaps in an earlier version.
Settings read_stored_settings(const std::string& file);
/// The same of a text that stands in `file`.
Settings parse_stored_settings(const std::string& text, const std::string& file);

}  // namespace sgdph::lab::settings
