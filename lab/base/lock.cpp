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

FileLock::FileLock(std::filesystem::path path, const std::string& activity, After after)
    : path_(std::move(path)), after_(after) {
  for (;;) {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file_ < 0) fail("cannot write {}: {}", path_.string(), std::strerror(errno));
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      ::close(std::exchange(file_, -1));
      if (error == EWOULDBLOCK) {
        fail("another process is {} ({} is locked); wait for it or stop it first", activity, path_.string());
      }
      fail("cannot lock {}: {}", path_.string(), std::strerror(error));
    }
    // Its holder may remove the file when done: what was locked here may no longer be the one others see.
    struct stat held {};
    struct stat seen {};
    if (::fstat(file_, &held) == 0 && ::stat(path_.c_str(), &seen) == 0 && held.st_ino == seen.st_ino) return;
    ::close(std::exchange(file_, -1));
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
