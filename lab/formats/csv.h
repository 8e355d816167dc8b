#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sgdph::lab::formats {

/// Comma-separated values, line by line. A field in quotes may hold commas, and quotes written twice (RFC 4180), but no
/// line end. Lines may end as on Windows, and the last one may be blank.
class CsvReader {
 public:
  /// `where` names the source in messages, which count lines from 1, after those before the text if it is a part of a
  /// file. `bytes` must outlive this.
  CsvReader(std::string_view bytes, std::string where, size_t lines_before = 0);

  /// Goes to the next line; false after the last. A quote that does not end is a UserError.
  bool next();
  /// Of the line, one at least.
  const std::vector<std::string>& fields() const { return fields_; }
  /// As it stands, without its end.
  std::string_view line() const { return line_; }
  /// "table.csv:3"
  std::string place() const;

 private:
  void split();

  std::string_view rest_;
  std::string where_;
  size_t number_;
  std::string_view line_;
  std::vector<std::string> fields_;
};

}  // namespace sgdph::lab::formats
