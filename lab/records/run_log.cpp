#include "records/run_log.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace sgdph::lab::records {

void RunLog::start(std::vector<nlohmann::json> records) {
  std::string text;
  for (const auto& record : records) text += record.dump() + "\n";
  if (!path_.empty()) write_own_file(path_, {text});
  records_ = std::move(records);
}

void RunLog::append(nlohmann::json record) {
  if (!path_.empty()) append_to_file(path_, record.dump() + "\n");
  records_.push_back(std::move(record));
}

std::vector<nlohmann::json> read_log(const std::filesystem::path& path) {
  return parse_log(read_file(path), path.string());
}

std::vector<nlohmann::json> parse_log(const std::string& text, const std::string& where) {
  std::vector<nlohmann::json> records;
  size_t number = 0;
  for (size_t from = 0; from < text.size();) {
    const auto end = text.find('\n', from);
    if (end == std::string::npos) break;
    ++number;
    check_json(std::string_view(text).substr(from, end - from), where, number);
    auto record = nlohmann::json::parse(
        text.begin() + static_cast<std::ptrdiff_t>(from), text.begin() + static_cast<std::ptrdiff_t>(end), nullptr,
        false);
    if (!record.is_object()) fail("{}:{}: not a record of a run", where, number);
    records.push_back(std::move(record));
    from = end + 1;
  }
  return records;
}

}  // namespace sgdph::lab::records
