#include "command.h"

#include "data/registry.h"
#include "models/models.h"
#include "reproduce/experiment.h"
#include "settings/optimizer_table.h"
#include "settings/recipe.h"
#include "tables/table.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

namespace sgdph::cli {
namespace {

lab::Table table_of(const std::string& kind) {
  lab::Table table;
  if (kind == "models") {
    for (const auto& info : lab::model_infos()) table.rows.push_back({info.name, info.title});
  } else if (kind == "optimizers") {
    for (const auto& info : lab::optimizer_infos()) {
      table.rows.push_back({info.name, fmt::format("{}; settings: {}", info.title, fmt::join(info.keys, ", "))});
    }
  } else if (kind == "norms") {
    for (const auto& name : lab::norm_names()) table.rows.push_back({name, ""});
  } else if (kind == "data") {
    for (const auto& info : lab::dataset_infos()) table.rows.push_back({info.name, info.title});
  } else if (kind == "experiments") {
    for (const auto& name : lab::experiment_names()) {
      const auto experiment = lab::find_experiment(name);
      const auto& paper = experiment.paper;
      table.rows.push_back({name, paper.empty() ? experiment.title : fmt::format("{}; {}", experiment.title, paper)});
    }
  } else {
    for (const auto& name : lab::recipe_names()) table.rows.push_back({name, lab::named_recipe(name).title});
  }
  return table;
}

}  // namespace

Action setup_list(CLI::App& app) {
  const std::vector<std::string> kinds{"models", "norms", "optimizers", "data", "recipes", "experiments"};
  auto chosen = std::make_shared<std::string>();
  for (const auto& kind : kinds) {
    app.add_subcommand(kind, "the " + kind + " there are")->callback([chosen, kind] { *chosen = kind; });
  }
  app.require_subcommand(1);
  return [chosen] {
    fmt::print("{}", lab::text_list(table_of(*chosen)));
    return 0;
  };
}

}  // namespace sgdph::cli
