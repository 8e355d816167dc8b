#include "reproduce/paper.h"

#include "base/error.h"
#include "base/text.h"
#include "formats/csv.h"

#include <fmt/ranges.h>

#include <cmath>

namespace sgdph::lab::reproduce {
namespace {

std::optional<double> figure_of(const std::string& field, const std::string& place) {
  if (field.empty()) return std::nullopt;
  const auto value = number_from<double>(field);
  if (!value || !std::isfinite(*value)) fail("{}: '{}' is not a number", place, field);
  return value;
}

}  // namespace

PaperFigures parse_paper_figures(
    const std::string& text, const std::vector<std::string>& axes, const std::string& where, size_t lines_before) {
  auto columns = axes;
  columns.insert(columns.end(), {"value", "std", "table", "section", "note"});
  formats::CsvReader reader(text, where, lines_before);
  if (!reader.next() || reader.fields() != columns) {
    fail("{}:{}: the columns must be {}", where, lines_before + 1, fmt::join(columns, ","));
  }
  PaperFigures figures;
  while (reader.next()) {
    if (reader.line().empty()) continue;
    const auto place = reader.place();
    const auto& fields = reader.fields();
    if (fields.size() != columns.size()) fail("{}: {} fields instead of {}", place, fields.size(), columns.size());
    const auto* rest = fields.data() + axes.size();
    PaperFigure figure{figure_of(rest[0], place), figure_of(rest[1], place), rest[2], rest[3], rest[4]};
    if (!figure.value && figure.note.empty()) fail("{}: neither a value nor a note that says why", place);
    const std::vector<std::string> cell(fields.data(), rest);
    if (!figures.emplace(cell, figure).second) fail("{}: {} stands there twice", place, fmt::join(cell, ", "));
  }
  return figures;
}

}  // namespace sgdph::lab::reproduce
