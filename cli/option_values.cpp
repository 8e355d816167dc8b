#include "option_values.h"

#include "base/text.h"
#include "cost/engine.h"
#include "list.h"
#include "settings/settings.h"

#include <CLI/CLI.hpp>

#include <map>

namespace sgdph::cli {
namespace {

/// The table an option's names are from; empty if from none.
std::string table_of(const std::string& option) {
  static const std::map<std::string, std::string> tables = [] {
    std::map<std::string, std::string> found{{"--opts", "optimizers"}, {"--recipe", "recipes"}};
    lab::settings::Settings scratch;
    for (const auto& field : lab::settings::fields_of_all_optimizers(scratch)) {
      if (!field.table.empty()) found[field.flags] = field.table;
    }
    return found;
  }();
  const auto found = tables.find(option);
  return found == tables.end() ? "" : found->second;
}

/// The names an option takes: from the tables, or from a type such as {a,b,c}.
std::vector<std::string> words_for(const std::vector<std::string>& names, const std::string& type) {
  for (const auto& name : names) {
    if (name == "--engines") return lab::cost::engine_names();
    if (const auto table = table_of(name); !table.empty()) return names_in(table);
  }
  std::vector<std::string> words;
  if (type.size() > 2 && type.front() == '{' && type.back() == '}') {
    words = lab::words_between_commas(type.substr(1, type.size() - 2));
  }
  return words;
}

}  // namespace

std::vector<OptionText> options_of(const CLI::App& app) {
  std::vector<OptionText> all;
  for (const auto* option : app.get_options()) {
    if (option == app.get_help_ptr() || option->get_group().empty()) continue;
    OptionText text;
    for (const auto& name : option->get_snames()) text.names.push_back("-" + name);
    for (const auto& name : option->get_lnames()) text.names.push_back("--" + name);
    text.value = option->get_expected_min() == 0 ? "" : option->get_type_name();
    if (option->get_positional()) text.value = option->get_name();
    text.help = option->get_description();
    text.default_text = option->get_default_str();
    text.words = words_for(text.names, option->get_type_name());
    text.takes_path = text.words.empty() && (option->get_type_name() == "DIR" || option->get_type_name() == "FILE" ||
                                             option->get_type_name() == "PATH");
    all.push_back(std::move(text));
  }
  return all;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

}  // namespace sgdph::cli
