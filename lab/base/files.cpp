#include "base/files.h"

#include "base/error.h"
#include "base/system_calls.h"
#include "base/text.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sgdph::lab {
namespace {

namespace fs = std::filesystem;

/// The file is closed whatever is returned, a signal's interruption included.
bool close_file(int file) {
  return ::close(file) == 0 || errno == EINTR;
}

int open_for(const fs::path& path, OutputFile::Mode mode) {
  int how = 0;
  switch (mode) {
    case OutputFile::Mode::Create: how = O_EXCL; break;
    case OutputFile::Mode::Replace: how = O_TRUNC; break;
    case OutputFile::Mode::Append: how = O_APPEND; break;
  }
  // A pipe without a reader would be waited for.
  const int flags = O_WRONLY | O_CLOEXEC | O_CREAT | O_NOFOLLOW | O_NONBLOCK | how;
  const int file = made([&] { return ::open(path.c_str(), flags, 0644); });
  struct stat status {};
  if (file < 0 || (::fstat(file, &status) == 0 && S_ISREG(status.st_mode))) return file;
  ::close(file);
  errno = EINVAL;
  return -1;
}

constexpr std::string_view kHalfWritten = ".new";

/// Whether it is the name of a file of this target that is not in place yet; without a target, of any, those of earlier
/// versions included.
bool is_half_written(const std::string& name, const std::string& target) {
  if (name.size() < kHalfWritten.size() || name.substr(name.size() - kHalfWritten.size()) != kHalfWritten) return false;
  if (target.empty()) return true;
  if (name.rfind(target + ".", 0) != 0) return false;
  const auto from = target.size() + 1;
  const auto number = name.substr(from, name.size() - std::min(name.size(), from + kHalfWritten.size()));
  const auto dash = number.find('-');
  return dash != std::string::npos && number_from<int64_t>(number.substr(0, dash)) &&
         number_from<int64_t>(number.substr(dash + 1));
}

/// Removes it unless its writer holds it. What is no file has none.
void remove_if_left(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return;
  if (!S_ISREG(status.st_mode)) {
    ::unlink(path.c_str());
    return;
  }
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
  ::close(file);
}

void remove_half_written_in(const fs::path& folder, const std::string& target) {
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    if (is_half_written(at->path().filename().string(), target)) remove_if_left(at->path());
  }
}

/// Made and held by this process; a name that somebody has, whatever it is, is left to him.
OutputFile new_file_for(const fs::path& target) {
  static std::atomic<int64_t> count{0};
  remove_half_written(target);
  for (;;) {
    const auto path = fmt::format("{}.{}-{}{}", target.string(), ::getpid(), ++count, kHalfWritten);
    try {
      OutputFile file(path, OutputFile::Mode::Create, "; what was there before is unchanged", target.string());
      if (file.hold()) return file;
    } catch (const WriteError&) {
      struct stat there {};
      if (::lstat(path.c_str(), &there) != 0) throw;
    }
  }
}

std::string read_all(const fs::path& path, int file) {
  struct stat status {};
  std::string bytes;
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) bytes.reserve(static_cast<size_t>(status.st_size) + 1);
  // Pipes and files that grow have no size beforehand.
  std::array<char, 1 << 16> piece{};
  for (;;) {
    const auto count = ::read(file, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) return bytes;
    if (count < 0) fail("cannot read {}: {}", path.string(), std::strerror(errno));
    bytes.append(piece.data(), static_cast<size_t>(count));
  }
}

/// Closes it when done.
struct Closing {
  int file;
  explicit Closing(int opened) : file(opened) {}
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  ~Closing() {
    if (file >= 0) ::close(file);
  }
};

[[noreturn]] void refuse_stream(const fs::path& path) {
  fail("{} is no regular file but a pipe or device; remove it", path.string());
}

std::string read_opened(const fs::path& path, int flags) {
  const Closing closing(made([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags); }));
  if (closing.file < 0) fail("cannot open {}: {}", path.string(), std::strerror(errno));
  struct stat status {};
  const bool known = ::fstat(closing.file, &status) == 0;
  if (known && S_ISDIR(status.st_mode)) fail("{} is a folder, not a file", path.string());
  if (known && !S_ISREG(status.st_mode) && (flags & O_NONBLOCK) != 0) refuse_stream(path);
  return read_all(path, closing.file);
}

/// Some file systems do not know how to, and need not.
void sync_folder_of(const fs::path& file) {
  const auto folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const int descriptor = made([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) return;
  const bool done = made([&] { return ::fsync(descriptor); }) == 0 || errno == EINVAL || errno == EROFS;
  const int error = errno;
  ::close(descriptor);
  if (!done) {
    throw WriteError(
        fmt::format("{} is in place, but may not be after a power cut: {}", file.string(), std::strerror(error)));
  }
}

void write_to_stream(const fs::path& path, const std::vector<std::string_view>& pieces) {
  const int file = made([&] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC); });
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
      expected_(other.expected_),
      written_(other.written_),
      file_(std::exchange(other.file_, -1)) {}

OutputFile::~OutputFile() {
  if (file_ >= 0) ::close(file_);
}

void OutputFile::refuse() const {
  throw WriteError(
      fmt::format("cannot write {}: {}{}", name_, why_not_written(errno, path_, expected_, written_), remark_));
}

void OutputFile::write(std::string_view bytes) {
  const auto count = write_all(file_, bytes);
  written_ += count;
  if (count < bytes.size()) refuse();
}

void OutputFile::sync() {
  if (made([&] { return ::fsync(file_); }) != 0) refuse();
}

void OutputFile::finish() {
  sync();
  if (!close_file(std::exchange(file_, -1))) refuse();
}

bool OutputFile::hold() const {
  // Where there are no locks nobody takes it away either.
  static_cast<void>(made([&] { return ::flock(file_, LOCK_EX); }));
  struct stat status {};
  return ::fstat(file_, &status) != 0 || status.st_nlink > 0;
}

void put_in_place(const fs::path& from, const fs::path& to) {
  if (made([&] { return ::rename(from.c_str(), to.c_str()); }) != 0) {
    throw WriteError(fmt::format("cannot put {} in place: {}", to.string(), why_not_written(errno, to, 0)));
  }
  sync_folder_of(to);
}

NewFile::NewFile(fs::path target) : target_(std::move(target)), file_(new_file_for(target_)) {}

NewFile::~NewFile() {
  if (!placed_) ::unlink(file_.path().c_str());
}

void NewFile::put_in_place() {
  // Held until it has its name: nobody may take it for a left-over.
  file_.sync();
  lab::put_in_place(file_.path(), target_);
  placed_ = true;
}

void remove_half_written(const fs::path& target) {
  remove_half_written_in(target.has_parent_path() ? target.parent_path() : fs::path("."), target.filename().string());
}

void remove_all_half_written(const fs::path& folder) {
  remove_half_written_in(folder, "");
}

std::string read_file(const fs::path& path) {
  return read_opened(path, O_NONBLOCK);
}

std::string read_named_file(const fs::path& path) {
  return read_opened(path, 0);
}

void check_regular(const fs::path& path) {
  if (is_stream(path)) refuse_stream(path);
}

void write_file_atomically(const fs::path& path, const std::vector<std::string_view>& pieces) {
  if (is_stream(path)) return write_to_stream(path, pieces);
  std::error_code error;
  const auto target = fs::is_symlink(path, error) ? fs::weakly_canonical(path, error) : path;
  write_own_file(error ? path : target, pieces);
}

void write_own_file(const fs::path& path, const std::vector<std::string_view>& pieces) {
  NewFile file(path);
  size_t bytes = 0;
  for (const auto piece : pieces) bytes += piece.size();
  file.expect(bytes);
  for (const auto piece : pieces) file.write(piece);
  file.put_in_place();
}

bool is_stream(const fs::path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

void append_to_file(const fs::path& path, std::string_view bytes) {
  const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int file = made([&] { return ::open(path.c_str(), flags); });
  if (file < 0) throw WriteError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  const auto before = ::lseek(file, 0, SEEK_END);
  int error = write_all(file, bytes) < bytes.size() ? errno : 0;
  if (error == 0 && made([&] { return ::fsync(file); }) != 0) error = errno;
  const bool taken_back = error != 0 && before >= 0 && made([&] { return ::ftruncate(file, before); }) == 0;
  ::close(file);  // all is on the disk, or is told not to be
  if (error != 0) {
    throw WriteError(fmt::format(
        "cannot write {}: {}; {}", path.string(), why_not_written(error, path, bytes.size()),
        taken_back ? "what it held before is unchanged" : "its end is incomplete"));
  }
}

void make_writable_folder(const fs::path& path) {
  std::error_code error;
  // Those that are not there yet, the outermost last.
  std::vector<fs::path> made_here;
  auto missing = path.has_filename() ? path : path.parent_path();
  while (!missing.empty() && !fs::exists(missing, error)) {
    made_here.push_back(missing);
    missing = missing.parent_path();
  }
  do fs::create_directories(path, error);
  while (error == std::errc::interrupted);
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) {
    fail_by(
        error.value(), "cannot make the folder {}: {}", path.string(),
        error ? why_not_written(error.value(), path, 0) : "a file of that name exists");
  }
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    fail("the folder {} is not writable: {}; choose another", path.string(), std::strerror(errno));
  }
  // A power cut must not take away the folder of what is on the disk.
  for (const auto& folder : made_here) sync_folder_of(folder);
}

}  // namespace sgdph::lab
