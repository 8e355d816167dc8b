#include "tables/presentation.h"

#include "base/files.h"

namespace sgdph::lab::tables {
namespace {

const char* ending_of(TableFormat format) {
  switch (format) {
    case TableFormat::Text: return ".txt";
    case TableFormat::Markdown: return ".md";
    case TableFormat::Csv: return ".csv";
    case TableFormat::Json: return ".json";
  }
  return "";
}

}  // namespace

const std::map<std::string, TableFormat>& table_formats() {
  static const std::map<std::string, TableFormat> formats{
      {"text", TableFormat::Text},
      {"markdown", TableFormat::Markdown},
      {"csv", TableFormat::Csv},
      {"json", TableFormat::Json}};
  return formats;
}

std::string Presentation::as(TableFormat format) const {
  switch (format) {
    case TableFormat::Text: return readable.text();
    case TableFormat::Markdown: return readable.markdown();
    case TableFormat::Csv: return csv_table(flat);
    case TableFormat::Json: return whole.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  return "";
}

void Presentation::write(const std::filesystem::path& stem, const std::vector<TableFormat>& formats) const {
  for (const auto format : formats) write_file_atomically(stem.string() + ending_of(format), {as(format)});
}

}  // namespace sgdph::lab::tables
