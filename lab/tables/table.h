#pragma once

#include <map>
#include <string>
#include <vector>

namespace sgdph::lab {

enum class TableFormat { Text, Markdown, Csv, Json };
/// The formats by the names a command takes.
const std::map<std::string, TableFormat>& table_formats();

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

/// Columns of equal width, the first to the left and the others to the right.
std::string text_table(const Table& table);
std::string markdown_table(const Table& table);
/// RFC 4180: quoted where a comma, a quote or a line end makes it necessary.
std::string csv_table(const Table& table);

}  // namespace sgdph::lab
