#include "base/files.h"

#include "base/error.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace sgdph::lab {
namespace {

namespace fs = std::filesystem;

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

void write_to_stream(const fs::path& path, const std::vector<std::string_view>& pieces) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  bool whole = file >= 0;
  for (const auto piece : pieces) whole = whole && write_all(file, piece);
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!whole) throw WriteError(fmt::format("cannot write {}: {}", path.string(), std::strerror(error)));
}

/// A file being written; removed again unless it is put in place.
class NewFile {
 public:
  explicit NewFile(const fs::path& target) : target_(target), path_(target.string() + ".new") {
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file_ < 0) refuse("cannot write");
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (file_ >= 0) ::close(file_);
    if (!placed_) ::unlink(path_.c_str());
  }

  void write(std::string_view bytes) {
    if (!write_all(file_, bytes)) refuse("cannot write");
  }

  void put_in_place() {
    if (::fsync(file_) != 0) refuse("cannot write");
    if (::close(std::exchange(file_, -1)) != 0) refuse("cannot write");
    if (::rename(path_.c_str(), target_.c_str()) != 0) refuse("cannot put in place");
    placed_ = true;
    const auto folder = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
      ::fsync(descriptor);
      ::close(descriptor);
    }
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    throw WriteError(
        fmt::format("{} {}: {}; what was there before is unchanged", what, target_.string(), std::strerror(errno)));
  }

  fs::path target_;
  std::string path_;
  int file_ = -1;
  bool placed_ = false;
};

}  // namespace

std::string read_file(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) fail("{} is a folder, not a file", path.string());
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot open {}: {}", path.string(), std::strerror(errno));
  const auto size = fs::file_size(path, error);
  std::string bytes(error ? 0 : size, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(in.gcount()));
  // Pipes and files that grow have no size beforehand.
  if (in) bytes.append(std::istreambuf_iterator<char>(in), {});
  if (in.bad()) fail("cannot read {}: {}", path.string(), std::strerror(errno));
  return bytes;
}

void write_file_atomically(const fs::path& path, const std::vector<std::string_view>& pieces) {
  if (is_stream(path)) return write_to_stream(path, pieces);
  std::error_code error;
  const auto target = fs::is_symlink(path, error) ? fs::weakly_canonical(path, error) : path;
  NewFile file(error ? path : target);
  for (const auto piece : pieces) file.write(piece);
  file.put_in_place();
}

bool is_stream(const fs::path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

void append_to_file(const fs::path& path, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) fail("cannot write {}: {}", path.string(), std::strerror(errno));
  const auto before = ::lseek(file, 0, SEEK_END);
  const auto written = ::write(file, bytes.data(), bytes.size());
  int error = written < 0 ? errno : written < static_cast<ssize_t>(bytes.size()) ? ENOSPC : 0;
  if (error == 0 && ::fsync(file) != 0) error = errno;
  const bool taken_back = error != 0 && ::ftruncate(file, before) == 0;
  ::close(file);
  if (error != 0) {
    throw WriteError(fmt::format(
        "cannot write {}: {}; {}", path.string(), std::strerror(error),
        taken_back ? "what it held before is unchanged" : "its end is incomplete"));
  }
}

void make_writable_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!fs::is_directory(path)) {
    fail("cannot make the folder {}: {}", path.string(), error ? error.message() : "a file of that name exists");
  }
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    fail("the folder {} is not writable: {}; choose another", path.string(), std::strerror(errno));
  }
}

}  // namespace sgdph::lab
