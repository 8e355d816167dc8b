#include "fetch/part_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace sgdph::lab {

namespace fs = std::filesystem;

PartFile::PartFile(const fs::path& target)
    : target_(target), path_(target.string() + ".part"), origin_path_(target.string() + ".part.json") {}

PartFile::~PartFile() {
  close();
}

void PartFile::keep_only(const std::string& url) {
  std::error_code error;
  const auto bytes = fs::file_size(path_, error);
  if (!error && fs::exists(origin_path_, error)) {
    // A note that cannot be understood is no reason to stop: the part is fetched anew.
    const auto note = nlohmann::json::parse(read_file(origin_path_), nullptr, false);
    if (note.is_object()) {
      try {
        origin_ = {note.value("url", ""), note.value("validator", ""), note.value("total", int64_t{0})};
      } catch (const nlohmann::json::exception&) {
        origin_ = {};
      }
    }
    if (origin_.url == url && !origin_.validator.empty()) {
      size_ = static_cast<int64_t>(bytes);
      return;
    }
  }
  remove();
}

void PartFile::restart(const PartOrigin& origin) {
  close();
  // The bytes go first: a note beside the bytes of another file would join two files.
  open(O_TRUNC);
  origin_ = origin;
  const auto note =
      nlohmann::json{{"url", origin.url}, {"validator", origin.validator}, {"total", origin.total}}.dump() + "\n";
  write_file_atomically(origin_path_, {note});
  size_ = 0;
}

void PartFile::append(std::string_view bytes) {
  if (file_ < 0) open(O_APPEND);
  while (!bytes.empty()) {
    const auto written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("cannot write {}: {}; what is there can be continued", path_.string(), std::strerror(errno));
    }
    size_ += written;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void PartFile::put_in_place() {
  if (file_ < 0) open(O_APPEND);
  if (::fsync(file_) != 0) fail("cannot write {}: {}", path_.string(), std::strerror(errno));
  close();
  std::error_code error;
  fs::rename(path_, target_, error);
  if (error) fail("cannot put {} in place: {}", target_.string(), error.message());
  fs::remove(origin_path_, error);
}

void PartFile::remove() {
  close();
  std::error_code error;
  fs::remove(path_, error);
  if (error) fail("cannot remove {}: {}", path_.string(), error.message());
  fs::remove(origin_path_, error);
  origin_ = {};
  size_ = 0;
}

void PartFile::open(int flags) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0644);
  if (file_ < 0) fail("cannot write {}: {}", path_.string(), std::strerror(errno));
}

void PartFile::close() {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
}

}  // namespace sgdph::lab
