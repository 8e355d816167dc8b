#include "tables/table.h"

#include "base/escape.h"

#include <fmt/format.h>

#include <algorithm>

namespace sgdph::lab {
namespace {

std::vector<size_t> widths_of(const Table& table) {
  std::vector<size_t> widths;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    size_t width = table.columns[i].size();
    for (const auto& row : table.rows) width = std::max(width, row[i].size());
    widths.push_back(width);
  }
  return widths;
}

std::string padded(const std::vector<std::string>& cells, const std::vector<size_t>& widths, const char* between) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += between;
    line += i == 0 ? fmt::format("{:<{}}", cells[i], widths[i]) : fmt::format("{:>{}}", cells[i], widths[i]);
  }
  return line;
}

}  // namespace

std::string text_table(const Table& table) {
  const auto widths = widths_of(table);
  auto text = padded(table.columns, widths, "  ") + "\n";
  text += std::string(text.size() - 1, '-') + "\n";
  for (const auto& row : table.rows) text += padded(row, widths, "  ") + "\n";
  return text;
}

std::string markdown_table(const Table& table) {
  const auto widths = widths_of(table);
  auto text = "| " + padded(table.columns, widths, " | ") + " |\n|";
  for (size_t i = 0; i < widths.size(); ++i) text += i == 0 ? "---|" : "---:|";
  text += "\n";
  for (const auto& row : table.rows) text += "| " + padded(row, widths, " | ") + " |\n";
  return text;
}

std::string csv_table(const Table& table) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) text += (i > 0 ? "," : "") + escape_csv(cells[i]);
    text += "\n";
  };
  add(table.columns);
  for (const auto& row : table.rows) add(row);
  return text;
}

const std::map<std::string, TableFormat>& table_formats() {
  static const std::map<std::string, TableFormat> formats{
      {"text", TableFormat::Text},
      {"markdown", TableFormat::Markdown},
      {"csv", TableFormat::Csv},
      {"json", TableFormat::Json}};
  return formats;
}

}  // namespace sgdph::lab
