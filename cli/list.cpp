#include "base/terminal.h"
#include "command.h"
#include "name_tables.h"
#include "tables/table.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

namespace sgdph::cli {

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
