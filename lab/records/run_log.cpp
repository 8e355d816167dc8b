#include "records/run_log.h"

#include "base/error.h"
#include "base/files.h"

namespace sgdph::lab::records {

void RunLog::start(std::vector<nlohmann::json> records) {
  std::string text;
  for (const auto& record : records) text += record.dump() + "\n";
  write_file_atomically(path_, {text});
  records_ = std::move(records);
}

void RunLog::append(nlohmann::json record) {
  append_to_file(path_, record.dump() + "\n");
  records_.push_back(std::move(record));
}

std::vector<nlohmann::json> read_log(const std::filesystem::path& path) {
  const auto text = read_file(path);
  std::vector<nlohmann::json> records;
  size_t number = 0;
  for (size_t from = 0; from < text.size();) {
    const auto end = text.find('\n', from);
    if (end == std::string::npos) break;
    ++number;
    auto record = nlohmann::json::parse(
        text.begin() + static_cast<std::ptrdiff_t>(from), text.begin() + static_cast<std::ptrdiff_t>(end), nullptr,
        false);
    if (!record.is_object()) fail("{}:{}: not a record of a run", path.string(), number);
    records.push_back(std::move(record));
    from = end + 1;
  }
  return records;
}

}  // namespace sgdph::lab::records
