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

/// How many of the bytes were written; fewer than all if errno says why.
size_t write_all(int file, std::string_view bytes) {
  size_t count = 0;
  while (count < bytes.size()) {
    const auto written = ::write(file, bytes.data() + count, bytes.size() - count);
    if (written < 0 && errno != EINTR) break;
    if (written > 0) count += static_cast<size_t>(written);
  }
  return count;
}

int open_for(const fs::path& path, OutputFile::Mode mode) {
  constexpr int kAny = O_WRONLY | O_CLOEXEC;
  switch (mode) {
    case OutputFile::Mode::Create: return ::open(path.c_str(), kAny | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
    case OutputFile::Mode::Replace: return ::open(path.c_str(), kAny | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);
    case OutputFile::Mode::Append: return ::open(path.c_str(), kAny | O_CREAT | O_APPEND | O_NOFOLLOW, 0644);
  }
  return -1;
}

fs::path new_name(const fs::path& target) {
  return target.string() + ".new";
}

void write_to_stream(const fs::path& path, const std::vector<std::string_view>& pieces) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  bool whole = file >= 0;
  for (const auto piece : pieces) whole = whole && write_all(file, piece) == piece.size();
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!whole) throw WriteError(fmt::format("cannot write {}: {}", path.string(), std::strerror(error)));
}

}  // namespace

OutputFile::OutputFile(fs::path path, Mode mode, std::string remark, std::string name)
    : path_(std::move(path)),
      remark_(std::move(remark)),
      name_(name.empty() ? path_.string() : std::move(name)),
      file_(open_for(path_, mode)) {
  if (file_ < 0) refuse();
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      remark_(std::move(other.remark_)),
      name_(std::move(other.name_)),
      file_(std::exchange(other.file_, -1)) {}

OutputFile::~OutputFile() {
  if (file_ >= 0) ::close(file_);
}

void OutputFile::refuse() const {
  throw WriteError(fmt::format("cannot write {}: {}{}", name_, std::strerror(errno), remark_));
}

void OutputFile::write(std::string_view bytes) {
  if (write_all(file_, bytes) < bytes.size()) refuse();
}

void OutputFile::finish() {
  if (::fsync(file_) != 0 || ::close(std::exchange(file_, -1)) != 0) refuse();
}

void put_in_place(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    throw WriteError(fmt::format("cannot put {} in place: {}", to.string(), std::strerror(errno)));
  }
  const auto folder = to.has_parent_path() ? to.parent_path() : fs::path(".");
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

NewFile::NewFile(fs::path target)
    : target_(std::move(target)),
      file_(new_name(target_), OutputFile::Mode::Replace, "; what was there before is unchanged", target_.string()) {}

NewFile::~NewFile() {
  if (!placed_) ::unlink(file_.path().c_str());
}

void NewFile::put_in_place() {
  file_.finish();
  lab::put_in_place(file_.path(), target_);
  placed_ = true;
}

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
  int error = write_all(file, bytes) < bytes.size() ? errno : 0;
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
