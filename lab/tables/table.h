#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sgdph::lab::tables {

/// A cell is its text, so that a row can be written as a list of texts.
struct TableCell {
  TableCell(std::string words) : text(std::move(words)) {}
  TableCell(const char* words) : text(words) {}

  std::string text;
  bool strong = false;  ///< the best of its kind; equal ones share it
  double bar = 0;       ///< length of a bar behind the figure, from 0 to 1; on a page alone
};

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<TableCell>> rows;

  /// Bars behind a column, the largest value's the longest; a value of 0 has none.
  void add_bars(const std::string& column, const std::vector<double>& values);
};

/// Columns of equal width, the first to the left and the others to the right. What is strong has a star.
std::string text_table(const Table& table);
/// Columns of equal width, all to the left, without a line under their names: a list. Names may be missing.
std::string text_list(const Table& table);
/// What is strong is bold; marks in a cell are letters.
std::string markdown_table(const Table& table);
/// RFC 4180: quoted where a comma, a quote or a line end makes it necessary.
std::string csv_table(const Table& table);
/// The rows scroll sideways by themselves where the page is narrow. `kind` is its class.
std::string html_table(const Table& table, const std::string& caption, const std::string& kind);

}  // namespace sgdph::lab::tables
