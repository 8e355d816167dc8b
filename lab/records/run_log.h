#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <vector>

namespace sgdph::lab::records {

/// Name of the file in a run's folder.
constexpr const char* kRunLog = "log.jsonl";

/// The log of a run, JSON lines: a header, one record per epoch, and an end record. Each line is on the disk before the
/// next step; a line that cannot be written whole is taken back.
class RunLog {
 public:
  /// An empty path: the records are kept in memory only.
  explicit RunLog(std::filesystem::path path) : path_(std::move(path)) {}

  /// Puts the file in place anew with these records, all or nothing.
  void start(std::vector<nlohmann::json> records);
  void append(nlohmann::json record);
  /// The file has these records already: nothing is written.
  void take_over(std::vector<nlohmann::json> records) { records_ = std::move(records); }
  const std::vector<nlohmann::json>& records() const { return records_; }

 private:
  std::filesystem::path path_;
  std::vector<nlohmann::json> records_;
};

/// The whole lines of a log's text; a last line without its end (the machine stopped while it was written) is left out.
/// A line that is not JSON is a UserError that names it.
std::vector<nlohmann::json> parse_log(const std::string& text, const std::string& where);
std::vector<nlohmann::json> read_log(const std::filesystem::path& path);

}  // namespace sgdph::lab::records
