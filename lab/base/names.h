#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sgdph::lab {

/// The name nearest to `name` by edit distance (insertions, deletions, exchanges, swaps of neighbours), if it is near
/// enough to be a slip of the pen.
std::optional<std::string> nearest_name(const std::string& name, const std::vector<std::string>& names);

/// " (did you mean 'x'?)", or nothing.
std::string suggestion(const std::string& name, const std::vector<std::string>& names);

/// "unknown model 'resnet81' (did you mean 'resnet18'?); there are ...", as a UserError.
[[noreturn]] void refuse_name(const std::string& kind, const std::string& name, const std::vector<std::string>& names);

/// Refuses a name that is not among `names`.
void check_name(const std::string& kind, const std::string& name, const std::vector<std::string>& names);

/// The name of a table's entry: its `name`, or what stands first in a pair.
template <class Entry>
std::string name_of(const Entry& entry) {
  return entry.name;
}
template <class Name, class Value>
std::string name_of(const std::pair<Name, Value>& entry) {
  return entry.first;
}

/// The names of a table, in its order.
template <class Table>
std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.push_back(name_of(entry));
  return names;
}

/// The entry of that name; refused as by check_name if there is none. The table must outlive what is returned.
template <class Table>
const auto& find_named(const Table& table, const std::string& kind, const std::string& name) {
  for (const auto& entry : table) {
    if (name_of(entry) == name) return entry;
  }
  refuse_name(kind, name, names_of(table));
}
template <class Table>
void find_named(const Table&& table, const std::string& kind, const std::string& name) = delete;

}  // namespace sgdph::lab
