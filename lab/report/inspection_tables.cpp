#include "report/inspection_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace sgdph::lab {
namespace {

using Json = nlohmann::ordered_json;

// What a reader looks for first in a table of blocks, whatever order it was written in.
constexpr std::string_view kLeading[] = {
    "block",
    "kind",
    "channels",
    "measured",
    "note",
    "shift_invariant",
    "off_diagonal",
    "row_sum.median_ratio",
    "row_sum.cosine",
    "row_sum.same_sign",
    "row_sum.error",
    "smallest_eigenvalue",
    "largest_eigenvalue"};
constexpr const char* kVerdictText = "verdict.text";
constexpr const char* kProbeFigures[] = {"error", "cosine", "same_sign"};

/// Plain values by their path: "row_sum.cosine".
void flatten(const std::string& path, const Json& value, Json& into) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      flatten(path.empty() ? key : fmt::format("{}.{}", path, key), inner, into);
    }
  } else if (!value.is_array()) {
    into[path] = value;
  }
}

/// "row sum: cosine".
std::string words_of_key(const std::string& key) {
  std::string words;
  for (const auto letter : key) {
    if (letter == '.') {
      words += ": ";
    } else {
      words += letter == '_' ? ' ' : letter;
    }
  }
  return words;
}

std::string figure_text(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return value.dump();
}

/// What stands in an object under a name; null if nothing does, or it is no object.
const Json& member(const Json& object, const std::string& name) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

/// The block's entry of a probe; null if it has none.
const Json& probe_of(const Json& block, const std::string& name) {
  static const Json none;
  for (const auto& probe : member(block, "probes")) {
    if (member(probe, "probe") == name) return probe;
  }
  return none;
}

/// Those of any block, in the order in which they come.
std::vector<std::string> probe_names(const Json& blocks) {
  std::vector<std::string> names;
  for (const auto& block : blocks) {
    for (const auto& probe : member(block, "probes")) {
      if (!member(probe, "probe").is_string()) continue;
      const auto name = member(probe, "probe").get<std::string>();
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

}  // namespace

Table block_table(const Json& blocks) {
  Table table;
  std::vector<Json> flat;
  std::vector<std::string> keys;
  for (const auto& block : blocks) {
    if (!block.is_object()) continue;
    flatten("", block, flat.emplace_back(Json::object()));
    for (const auto& [key, value] : flat.back().items()) {
      // A remark that no block has is no column.
      if (value != "" && std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  const auto rank = [](const std::string& key) {
    return std::find(std::begin(kLeading), std::end(kLeading), key) - std::begin(kLeading);
  };
  std::stable_sort(keys.begin(), keys.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  for (const auto& key : keys) table.columns.push_back(words_of_key(key));
  for (const auto& block : flat) {
    std::vector<TableCell> row;
    for (const auto& key : keys) row.emplace_back(figure_text(member(block, key)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table probe_table(const Json& blocks) {
  const auto names = probe_names(blocks);
  if (names.empty()) return {};
  Table table{{"block"}, {}};
  for (const auto* figure : kProbeFigures) {
    for (const auto& name : names) table.columns.push_back(fmt::format("{}, {}", words_of_key(figure), name));
  }
  for (const auto& block : blocks) {
    if (!block.is_object()) continue;
    std::vector<TableCell> row{figure_text(member(block, "block"))};
    for (const auto* figure : kProbeFigures) {
      for (const auto& name : names) {
        row.emplace_back(figure_text(member(member(probe_of(block, name), "estimate"), figure)));
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table inspection_facts(const Json& facts) {
  Table table{{"", ""}, {}};
  auto flat = Json::object();
  flatten("", facts, flat);
  flat.erase(kVerdictText);
  for (const auto& [key, value] : flat.items()) table.rows.push_back({words_of_key(key), figure_text(value)});
  return table;
}

std::string verdict_text(const FoundInspection& inspection) {
  const auto& text = member(member(inspection.facts, "verdict"), "text");
  return text.is_null() ? "" : figure_text(text);
}

}  // namespace sgdph::lab
