#include "list.h"

#include "base/names.h"
#include "base/terminal.h"
#include "command.h"
#include "data/datasets.h"
#include "models/models.h"
#include "optimizers/options.h"
#include "reproduce/experiment.h"
#include "settings/recipe.h"
#include "tables/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <memory>

namespace sgdph::cli {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

Rows models() {
  Rows rows;
  for (const auto& info : lab::models::model_infos()) rows.emplace_back(info.name, info.title);
  return rows;
}

Rows datasets() {
  Rows rows;
  for (const auto& entry : lab::data::datasets()) rows.emplace_back(entry.name, lab::data::description(entry));
  return rows;
}

Rows norms() {
  Rows rows;
  for (const auto& name : lab::models::norm_names()) rows.emplace_back(name, "");
  return rows;
}

Rows optimizers() {
  Rows rows;
  for (const auto& entry : lab::optimizers::optimizer_entries()) {
    rows.emplace_back(
        entry.info.name, fmt::format(
                             "{} ({}); settings: {}", entry.info.title, entry.info.source,
                             fmt::join(lab::names_of(entry.options), ", ")));
  }
  return rows;
}

Rows recipes() {
  Rows rows;
  for (const auto& name : lab::settings::recipe_names())
    rows.emplace_back(name, lab::settings::named_recipe(name).title);
  return rows;
}

Rows experiments() {
  Rows rows;
  for (const auto& name : lab::reproduce::experiment_names()) {
    const auto experiment = lab::reproduce::find_experiment(name);
    const auto& paper = experiment.paper;
    rows.emplace_back(name, paper.empty() ? experiment.title : fmt::format("{}; {}", experiment.title, paper));
  }
  return rows;
}

}  // namespace

const std::vector<NameTable>& name_tables() {
  static const std::vector<NameTable> tables{
      {"models", models}, {"norms", norms},     {"optimizers", optimizers},
      {"data", datasets}, {"recipes", recipes}, {"experiments", experiments},
  };
  return tables;
}

std::vector<std::string> names_in(const std::string& table) {
  std::vector<std::string> names;
  for (const auto& row : lab::find_named(name_tables(), "table", table).rows()) names.push_back(row.first);
  return names;
}

Action setup_list(CLI::App& app) {
  auto chosen = std::make_shared<const NameTable*>(nullptr);
  for (const auto& table : name_tables()) {
    app.add_subcommand(table.name, std::string("the ") + table.name + " there are")->callback([chosen, &table] {
      *chosen = &table;
    });
  }
  app.require_subcommand(1);
  return [chosen] {
    lab::tables::Table table;
    for (const auto& [name, text] : (*chosen)->rows()) table.rows.push_back({name, text});
    lab::print("{}", lab::tables::text_list(table));
    return 0;
  };
}

}  // namespace sgdph::cli
