#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tables/document.h"

namespace sgdph::lab::tables {

enum class TableFormat { Text, Markdown, Csv, Json };
/// The formats by the names a command takes.
const std::map<std::string, TableFormat>& table_formats();

/// A result for people, and for programs: one table, or everything there is.
struct Presentation {  // NOLINT(bugprone-exception-escape): the library's json moves without throwing
  Document readable;
  Table flat;
  nlohmann::json whole;

  std::string as(TableFormat format) const;
  /// To STEM.txt, .md, .csv and .json, or some of them.
  void write(
      const std::filesystem::path& stem,
      const std::vector<TableFormat>& formats = {
          TableFormat::Text, TableFormat::Markdown, TableFormat::Csv, TableFormat::Json}) const;
};

}  // namespace sgdph::lab::tables
