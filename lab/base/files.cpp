#include "base/files.h"

#include "base/error.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace sgdph::lab {
namespace {

namespace fs = std::filesystem;

/// A call that a signal may cut off is made again.
template <class Call>
int made(Call call) {
  int result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// The file is closed whatever is returned, a signal's interruption included.
bool close_file(int file) {
  return ::close(file) == 0 || errno == EINTR;
}

std::string megabytes(double bytes) {
  return bytes < 1e5 ? fmt::format("{:.1f} kB", bytes / 1e3) : fmt::format("{:.1f} MB", bytes / 1e6);
}

/// What a failed write to the file says: the reason, and on a full disk how much room there is and should be.
/// `written` goes to waste, and counts as free.
std::string reason(int error, const fs::path& path, size_t needed, size_t written = 0) {
  std::string text = std::strerror(error);
  if (error != ENOSPC && error != EDQUOT) return text;
  const auto folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  struct statvfs disk {};
  const bool known = ::statvfs(folder.c_str(), &disk) == 0;
  if (needed > 0) text += fmt::format("; it needs {}", megabytes(static_cast<double>(needed)));
  // Room for files, that is: a disk can be out of inodes, too.
  if (known) {
    text += fmt::format(
        "{} {} free{}", needed > 0 ? "," : ";",
        megabytes(
            static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize) + static_cast<double>(written)),
        disk.f_files > 0 && disk.f_favail == 0 ? " and no inode" : "");
  }
  return text;
}

/// How many of the bytes were written; fewer than all if errno says why.
size_t write_all(int file, std::string_view bytes) {
  size_t count = 0;
  while (count < bytes.size()) {
    const auto written = ::write(file, bytes.data() + count, bytes.size() - count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      if (written == 0) errno = ENOSPC;  // no file takes nothing while there is room
      break;
    }
    count += static_cast<size_t>(written);
  }
  return count;
}

int open_for(const fs::path& path, OutputFile::Mode mode) {
  int how = 0;
  switch (mode) {
    case OutputFile::Mode::Create: how = O_EXCL; break;
    case OutputFile::Mode::Replace: how = O_TRUNC; break;
    case OutputFile::Mode::Append: how = O_APPEND; break;
  }
  return made([&] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_NOFOLLOW | how, 0644); });
}

fs::path new_name(const fs::path& target) {
  return target.string() + ".new";
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
  throw WriteError(fmt::format("cannot write {}: {}{}", name_, reason(errno, path_, expected_, written_), remark_));
}

void OutputFile::write(std::string_view bytes) {
  const auto count = write_all(file_, bytes);
  written_ += count;
  if (count < bytes.size()) refuse();
}

void OutputFile::finish() {
  if (made([&] { return ::fsync(file_); }) != 0 || !close_file(std::exchange(file_, -1))) refuse();
}

void put_in_place(const fs::path& from, const fs::path& to) {
  if (made([&] { return ::rename(from.c_str(), to.c_str()); }) != 0) {
    throw WriteError(fmt::format("cannot put {} in place: {}", to.string(), reason(errno, to, 0)));
  }
  sync_folder_of(to);
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
  const int file = made([&] { return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW); });
  if (file < 0) throw WriteError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  const auto before = ::lseek(file, 0, SEEK_END);
  int error = write_all(file, bytes) < bytes.size() ? errno : 0;
  if (error == 0 && made([&] { return ::fsync(file); }) != 0) error = errno;
  const bool taken_back = error != 0 && before >= 0 && made([&] { return ::ftruncate(file, before); }) == 0;
  ::close(file);  // all is on the disk, or is told not to be
  if (error != 0) {
    throw WriteError(fmt::format(
        "cannot write {}: {}; {}", path.string(), reason(error, path, bytes.size()),
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
        error ? reason(error.value(), path, 0) : "a file of that name exists");
  }
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    fail("the folder {} is not writable: {}; choose another", path.string(), std::strerror(errno));
  }
  // A power cut must not take away the folder of what is on the disk.
  for (const auto& folder : made_here) sync_folder_of(folder);
}

}  // namespace sgdph::lab
