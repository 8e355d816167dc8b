#include "base/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace sgdph::lab {

namespace {

FileLock take_or_fail(const std::filesystem::path& path, const std::string& activity, FileLock::After after) {
  auto lock = FileLock::take(path, after);
  if (!lock) fail("another process is {} ({} is locked); wait for it or stop it first", activity, path.string());
  return std::move(*lock);
}

}  // namespace

FileLock::FileLock(std::filesystem::path path, After after, int file)
    : path_(std::move(path)), after_(after), file_(file) {}

FileLock::FileLock(std::filesystem::path path, const std::string& activity, After after)
    : FileLock(take_or_fail(path, activity, after)) {}

std::optional<FileLock> FileLock::take(const std::filesystem::path& path, After after) {
  for (;;) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0 && errno == EINTR) continue;
    if (file < 0) fail_by(errno, "cannot write {}: {}", path.string(), std::strerror(errno));
    FileLock lock(path, After::Keep, file);
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return std::nullopt;
      if (errno == EINTR) continue;
      fail_by(errno, "cannot lock {}: {}", path.string(), std::strerror(errno));
    }
    // Its holder may remove the file when done: what was locked here may no longer be the one others see.
    struct stat held {};
    struct stat seen {};
    if (::fstat(file, &held) == 0 && ::stat(path.c_str(), &seen) == 0 && held.st_ino == seen.st_ino) {
      lock.after_ = after;
      return lock;
    }
  }
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)), after_(other.after_), file_(std::exchange(other.file_, -1)) {}

FileLock::~FileLock() {
  if (file_ < 0) return;
  if (after_ == After::Remove) ::unlink(path_.c_str());
  ::close(file_);
}

bool FileLock::is_held(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool held = ::flock(file, LOCK_EX | LOCK_NB) != 0;
  ::close(file);
  return held;
}

}  // namespace sgdph::lab
