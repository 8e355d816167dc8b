#include "formats/csv.h"

#include "base/error.h"

#include <algorithm>
#include <utility>

namespace sgdph::lab::formats {

CsvReader::CsvReader(std::string_view bytes, std::string where, size_t lines_before)
    : rest_(bytes), where_(std::move(where)), number_(lines_before) {}

std::string CsvReader::place() const {
  return fmt::format("{}:{}", where_, number_);
}

bool CsvReader::next() {
  const auto end = std::min(rest_.find('\n'), rest_.size());
  line_ = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
  if (line_.empty() && rest_.empty()) return false;
  ++number_;
  split();
  return true;
}

void CsvReader::split() {
  fields_.clear();
  auto rest = line_;
  for (bool more = true; more;) {
    std::string field;
    // Elsewhere than at the beginning a quote is a character as any other.
    if (!rest.empty() && rest.front() == '"') {
      for (bool open = true; open;) {
        const auto end = rest.find('"', 1);
        if (end == std::string_view::npos) fail("{}: a quote does not end; correct the line", place());
        field += rest.substr(1, end - 1);
        rest.remove_prefix(end + 1);
        open = !rest.empty() && rest.front() == '"';
        if (open) field += '"';
      }
      if (!rest.empty() && rest.front() != ',') fail("{}: text follows a quote; correct the line", place());
    }
    const auto end = std::min(rest.find(','), rest.size());
    field += rest.substr(0, end);
    fields_.push_back(std::move(field));
    more = end < rest.size();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace sgdph::lab::formats
