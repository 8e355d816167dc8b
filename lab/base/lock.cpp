#include "base/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/system_calls.h"

namespace sgdph::lab {

namespace {

constexpr int kTries = 4;
constexpr std::chrono::milliseconds kMoment{3};

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
  int tries = 0;
  for (;;) {
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const int file = made([&] { return ::open(path.c_str(), flags, 0644); });
    if (file < 0) fail_by(errno, "cannot write {}: {}", path.string(), std::strerror(errno));
    FileLock lock(path, After::Keep, file);
    struct stat held {};
    if (::fstat(file, &held) == 0 && !S_ISREG(held.st_mode)) {
      fail("{} is no regular file but a pipe or device; remove it", path.string());
    }
    if (made([&] { return ::flock(file, LOCK_EX | LOCK_NB); }) != 0) {
      if (errno != EWOULDBLOCK) fail_by(errno, "cannot lock {}: {}", path.string(), std::strerror(errno));
      // One who only asks whether it is held has it for a moment, too.
      if (++tries == kTries) return std::nullopt;
      std::this_thread::sleep_for(kMoment);
      continue;
    }
    // Its holder may remove the file when done: what was locked here may no longer be the one others see.
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

void FileLock::sign(const std::string& words) const {
  if (::ftruncate(file_, 0) != 0) return;
  static_cast<void>(::pwrite(file_, words.data(), words.size(), 0) < 0);
}

bool FileLock::is_held(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  const bool held = ::flock(file, LOCK_SH | LOCK_NB) != 0;
  ::close(file);
  return held;
}

int64_t held_locks(const std::filesystem::path& folder, const std::string& extension, const std::string& signature) {
  int64_t count = 0;
  std::error_code error;
  const std::filesystem::directory_iterator end;
  for (auto at = std::filesystem::directory_iterator(folder, error); !error && at != end; at.increment(error)) {
    if (at->path().extension() != extension || !FileLock::is_held(at->path())) continue;
    try {
      if (read_file(at->path()) == signature) ++count;
    } catch (const UserError&) {
      continue;  // it is gone: so is its holder
    }
  }
  return count;
}

}  // namespace sgdph::lab
