#include "tables/table.h"

#include "base/escape.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace sgdph::lab::tables {
namespace {

using Lines = std::vector<std::vector<std::string>>;

/// The names of the columns, then the rows; of a cell what `shown` makes of it.
template <class Shown>
Lines lines_of(const Table& table, const Shown& shown) {
  Lines lines(1);
  for (const auto& column : table.columns) lines.front().push_back(shown(TableCell(column)));
  for (const auto& row : table.rows) {
    auto& line = lines.emplace_back();
    for (const auto& cell : row) line.push_back(shown(cell));
  }
  return lines;
}

std::string marked_with_star(const TableCell& cell) {
  return cell.strong ? cell.text + " *" : cell.text;
}

std::string as_markdown(const TableCell& cell) {
  const auto text = escape_markdown(cell.text);
  return cell.strong ? "**" + text + "**" : text;
}

/// Every line padded to the same widths.
template <class Column>
std::vector<std::string> aligned(const Lines& lines, const char* between, const Column& is_left) {
  std::vector<size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::vector<std::string> all;
  for (const auto& line : lines) {
    auto& text = all.emplace_back();
    for (size_t i = 0; i < line.size(); ++i) {
      if (i > 0) text += between;
      text += is_left(i) ? fmt::format("{:<{}}", line[i], widths[i]) : fmt::format("{:>{}}", line[i], widths[i]);
    }
  }
  return all;
}

bool is_first(size_t column) {
  return column == 0;
}

}  // namespace

void Table::add_bars(const std::string& column, const std::vector<double>& values) {
  const auto place = static_cast<size_t>(std::find(columns.begin(), columns.end(), column) - columns.begin());
  const auto largest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  for (size_t i = 0; i < values.size(); ++i) {
    rows[i].at(place).bar = largest > 0 ? std::max(0., values[i] / largest) : 0;
  }
}

std::string text_table(const Table& table) {
  auto lines = aligned(lines_of(table, marked_with_star), "  ", is_first);
  lines.insert(lines.begin() + 1, std::string(lines.front().size(), '-'));
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

std::string text_list(const Table& table) {
  auto lines = lines_of(table, marked_with_star);
  if (table.columns.empty()) lines.erase(lines.begin());
  std::string text;
  for (auto& line : aligned(lines, "  ", [](size_t) { return true; })) {
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string markdown_table(const Table& table) {
  const auto lines = aligned(lines_of(table, as_markdown), " | ", is_first);
  auto text = fmt::format("| {} |\n|", lines.front());
  for (size_t i = 0; i < table.columns.size(); ++i) text += is_first(i) ? "---|" : "---:|";
  text += "\n";
  for (size_t i = 1; i < lines.size(); ++i) text += fmt::format("| {} |\n", lines[i]);
  return text;
}

std::string csv_table(const Table& table) {
  std::string text;
  for (const auto& line : lines_of(table, [](const TableCell& cell) { return escape_csv(cell.text); })) {
    text += fmt::format("{}\n", fmt::join(line, ","));
  }
  return text;
}

std::string html_table(const Table& table, const std::string& caption, const std::string& kind) {
  auto html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table class=\"{1}\"><caption>{0}"
      "</caption>\n<thead><tr>",
      escape_html(caption), kind);
  for (const auto& column : table.columns) html += "<th scope=\"col\">" + escape_html(column) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (const auto& cell : row) {
      auto text = escape_html(cell.text);
      if (cell.strong) text = fmt::format("<strong>{}</strong>", text);
      if (cell.bar > 0) text = fmt::format(R"(<span class="bar" style="--part:{:.3f}">{}</span>)", cell.bar, text);
      html += &cell == &row.front() ? "<th scope=\"row\">" + text + "</th>" : "<td>" + text + "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string ratio_text(double ratio) {
  return std::isfinite(ratio) && ratio > 0 ? fmt::format("{:.2f}x", ratio) : "-";
}

std::string decimals_text(double value, int decimals) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals) : "-";
}

std::string percent_text(double share) {
  return std::isfinite(share) ? fmt::format("{:.0f} %", 100 * share) : "-";
}

std::string difference_text(const std::optional<double>& difference) {
  return difference ? fmt::format("{:+.2f}", *difference) : "-";
}

std::string spread_text(double value, const std::optional<double>& deviation) {
  return deviation ? fmt::format("{:.2f} +- {:.2f}", value, *deviation) : fmt::format("{:.2f}", value);
}

std::string spread_text(const Statistic& figure) {
  if (figure.count == 0) return "-";
  return spread_text(figure.mean, figure.count > 1 ? std::optional(figure.deviation) : std::nullopt);
}

std::string number_text(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

std::string runs_text(size_t over, size_t planned, size_t diverged) {
  const auto text = fmt::format("{}/{}", over, planned);
  return diverged == 0 ? text : fmt::format("{}, {} diverged", text, diverged);
}

}  // namespace sgdph::lab::tables
