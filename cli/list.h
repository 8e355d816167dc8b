#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sgdph::cli {

/// A table of names with a line about each: what `sgdph list` prints and what options complete from.
struct NameTable {
  const char* name;
  std::vector<std::pair<std::string, std::string>> (*rows)();
};

const std::vector<NameTable>& name_tables();
/// The names of the table that is called so.
std::vector<std::string> names_in(const std::string& table);

}  // namespace sgdph::cli
