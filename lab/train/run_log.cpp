#include "train/run_log.h"

#include "base/error.h"
#include "base/files.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace sgdph::lab {

void RunLog::start(std::vector<nlohmann::json> records) {
  std::string text;
  for (const auto& record : records) text += record.dump() + "\n";
  write_file_atomically(path_, {text});
  records_ = std::move(records);
}

void RunLog::append(nlohmann::json record) {
  const auto line = record.dump() + "\n";
  const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) fail("cannot write {}: {}", path_.string(), std::strerror(errno));
  const auto before = ::lseek(file, 0, SEEK_END);
  const auto written = ::write(file, line.data(), line.size());
  int error = written < 0 ? errno : written < static_cast<ssize_t>(line.size()) ? ENOSPC : 0;
  if (error == 0 && ::fsync(file) != 0) error = errno;
  const bool taken_back = error != 0 && ::ftruncate(file, before) == 0;
  ::close(file);
  if (error != 0) {
    throw WriteError(fmt::format(
        "cannot write {}: {}; {}", path_.string(), std::strerror(error),
        taken_back ? "the lines before are unchanged" : "its last line is incomplete"));
  }
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

}  // namespace sgdph::lab
