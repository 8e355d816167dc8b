#include "settings_options.h"

#include "optimizers/options.h"

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

namespace sgdph::cli {
namespace {

std::string type_name(const lab::settings::Field& field) {
  return field.choices.empty() ? field.metavar : fmt::format("{{{}}}", fmt::join(field.choices, ","));
}

/// The default as help shows it; empty where the optimizer, the data set or the machine decides.
std::string default_text(const lab::settings::Field& field) {
  const auto value = field.get();
  if (value.is_null() || value == "" || value == nlohmann::json::array()) return "";
  return lab::settings::plain_text(value);
}

}  // namespace

void SettingsOptions::add_to(CLI::App& app, const std::function<bool(const lab::settings::Field&)>& wanted) {
  app.add_option("--recipe", recipe_, "settings by name, see 'sgdph list recipes'")
      ->type_name("NAME")
      ->group("Settings");
  app.add_option("--config", config_, "settings from a TOML file; they override the recipe's")
      ->type_name("FILE")
      ->group("Settings");
  add_fields(app, wanted);
}

void SettingsOptions::add_fields(CLI::App& app, const std::function<bool(const lab::settings::Field&)>& wanted) {
  lab::settings::Settings defaults;
  for (const auto& field : lab::settings::fields_of_all_optimizers(defaults)) {
    if (wanted && !wanted(field)) continue;
    CLI::Option* option = nullptr;
    if (field.is_flag()) {
      const auto negative = "!--no-" + field.flags.substr(2);
      option = app.add_flag(field.flags + "," + negative, flags_[field.key], field.help);
    } else {
      option = app.add_option(field.flags, words_[field.key], field.help)->type_name(type_name(field));
      const auto text = default_text(field);
      if (!text.empty()) option->default_str(text);
    }
    option->take_last()->group(lab::settings::to_string(field.part));
    options_[field.key] = option;
  }
}

lab::settings::Layer SettingsOptions::given() const {
  lab::settings::Layer layer;
  lab::settings::Settings scratch;
  for (const auto& field : lab::settings::fields_of_all_optimizers(scratch)) {
    const auto found = options_.find(field.key);
    if (found == options_.end() || found->second->count() == 0) continue;
    const auto* option = found->second;
    const auto where = option->get_name();
    layer[field.key] = {
        field.is_flag() ? nlohmann::json(flags_.at(field.key)) : field.parse(words_.at(field.key), where), where};
  }
  return layer;
}

lab::settings::Sources SettingsOptions::sources() const {
  lab::settings::Sources sources;
  if (!recipe_.empty()) sources.recipes.push_back(lab::settings::named_recipe(recipe_));
  if (!config_.empty()) sources.recipes.push_back(lab::settings::read_recipe(config_));
  sources.options = given();
  return sources;
}

std::string settings_text(const lab::settings::Settings& settings) {
  auto copy = settings;
  std::string text;
  std::string line;
  const char* part = nullptr;
  const auto flush = [&] {
    if (!line.empty()) text += line + "\n";
    line.clear();
  };
  for (const auto& field : lab::settings::fields_of(copy)) {
    if (!field.is_set()) continue;
    if (part != lab::settings::to_string(field.part)) {
      flush();
      part = lab::settings::to_string(field.part);
      line = fmt::format("{:<10}", part);
    }
    const auto value = field.get();
    const auto word = fmt::format(" {}={}", field.key, lab::settings::plain_text(value));
    if (line.size() + word.size() > 110) {
      flush();
      line = std::string(10, ' ');
    }
    line += word;
  }
  flush();
  return text;
}

}  // namespace sgdph::cli
