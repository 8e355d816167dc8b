#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tables/statistics.h"

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

// How figures are written in tables.

/// "1.33x"; "-" for what is not known: 0, or no number.
std::string ratio_text(double ratio);
/// "0.83"; "-" for no number.
std::string decimals_text(double value, int decimals = 2);
/// "67 %" of a share from 0 to 1; "-" for no number.
std::string percent_text(double share);
/// "+1.25"; "-" for none.
std::string difference_text(const std::optional<double>& difference);
/// "77.96 +- 0.30", without a deviation if there is none.
std::string spread_text(double value, const std::optional<double>& deviation);
/// The same of a mean; "-" of nothing.
std::string spread_text(const Statistic& figure);

/// Every digit, for programs; nothing for what is not known.
std::string number_text(const std::optional<double>& value);

/// "3/5, 1 diverged": runs that are over, and those planned.
std::string runs_text(size_t over, size_t planned, size_t diverged);

}  // namespace sgdph::lab::tables
