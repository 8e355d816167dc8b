// A library to preload into the command (LD_PRELOAD): it makes chosen system calls fail, stops the process at them,
// writes down what would be on the disk after a power cut, and lets the clock jump. By environment variables:
//
//   SGDPH_FAULTS_UNDER    the folder whose files are meant; calls on others pass
//   SGDPH_FAULTS_COUNT    a file of zeros, shared by all processes, that numbers the calls: eight bytes a kind
//   SGDPH_FAULTS_CALL     the kind that fails: open write fsync rename mkdir link unlink close truncate, or any
//   SGDPH_FAULTS_AT       which of them, from 1
//   SGDPH_FAULTS_LASTING  that one and all after it, as on a full disk
//   SGDPH_FAULTS_READS    files that are opened to be read count among "open" too
//   SGDPH_FAULTS_ERROR    how: a number for errno; "short" (half of a write is done); "kill" (SIGKILL before the call);
//                         "stop" (SIGSTOP before it, and then it is done)
//   SGDPH_FAULTS_JOURNAL  gets every change in order: tests/cli/kills_test.py knows what a power cut leaves
//   SGDPH_FAULTS_CLOCK    seconds by which the machine's clock jumps to and fro

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

namespace {

enum Call { Open, Write, Fsync, Rename, Mkdir, Link, Unlink, Close, Truncate, Any, Calls };
constexpr std::array<const char*, Calls> kNames{"open", "write",  "fsync", "rename",   "mkdir",
                                                "link", "unlink", "close", "truncate", "any"};

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

class Faults {
 public:
  Faults()
      : under_(variable("SGDPH_FAULTS_UNDER")),
        error_(variable("SGDPH_FAULTS_ERROR")),
        at_(std::atoll(variable("SGDPH_FAULTS_AT").c_str())),
        lasting_(!variable("SGDPH_FAULTS_LASTING").empty()),
        reads_(!variable("SGDPH_FAULTS_READS").empty()) {
    const auto call = variable("SGDPH_FAULTS_CALL");
    for (int i = 0; i < Calls; ++i) {
      if (call == kNames[static_cast<size_t>(i)]) call_ = i;
    }
    const auto open = real<int(const char*, int, ...)>("open");
    if (const auto count = variable("SGDPH_FAULTS_COUNT"); !count.empty()) {
      const int file = open(count.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
      if (file < 0 || ::ftruncate64(file, sizeof(std::atomic<int64_t>) * Calls) != 0) std::abort();
      counts_ = static_cast<std::atomic<int64_t>*>(
          ::mmap(nullptr, sizeof(std::atomic<int64_t>) * Calls, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
      real<int(int)>("close")(file);
    }
    if (const auto journal = variable("SGDPH_FAULTS_JOURNAL"); !journal.empty()) {
      journal_ = open(journal.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
  }

  /// By the variables as they were at the beginning, or the last one.
  static Faults& get() { return *current(); }
  static void begin_anew() { current() = new Faults; }

  bool is_meant(const std::string& path) const {
    return !under_.empty() && path.rfind(under_, 0) == 0 &&
           (path.size() == under_.size() || path[under_.size()] == '/');
  }
  bool is_meant(int file) { return file >= 0 && file < kFiles && meant_[static_cast<size_t>(file)]; }
  void note(int file, bool meant) {
    if (file >= 0 && file < kFiles) meant_[static_cast<size_t>(file)] = meant;
  }

  bool minds_reading() const { return reads_; }

  /// Numbers the call. True if it is to fail, with errno set; a short write has errno 0.
  bool strikes(Call call) {
    if (counts_ == nullptr) return false;
    const auto of_kind = ++counts_[call];
    const auto of_all = ++counts_[Any];
    if (at_ == 0 || (call != call_ && call_ != Any)) return false;
    const auto number = call_ == Any ? of_all : of_kind;
    if (lasting_ ? number < at_ : number != at_) return false;
    if (error_ == "kill") ::raise(SIGKILL);
    if (error_ == "stop") {
      ::raise(SIGSTOP);
      return false;
    }
    if (error_ == "short") {
      errno = 0;
      return call == Write;
    }
    errno = std::atoi(error_.c_str());
    return true;
  }

  /// One line of the journal and the bytes after it, in one write, so that processes do not mix.
  void record(
      const char* what, uint64_t file, int64_t offset, std::string_view bytes, const std::string& path = "",
      const std::string& to = "") const {
    if (journal_ < 0) return;
    auto text = std::string(what) + '\t' + std::to_string(file) + '\t' + std::to_string(offset) + '\t' +
                std::to_string(bytes.size()) + '\t' + path + '\t' + to + '\n';
    text.append(bytes);
    const int before = errno;
    const auto done = real<ssize_t(int, const void*, size_t)>("write")(journal_, text.data(), text.size());
    if (done != static_cast<ssize_t>(text.size())) std::abort();
    errno = before;
  }
  bool records() const { return journal_ >= 0; }

 private:
  static Faults*& current() {
    static auto* faults = new Faults;
    return faults;
  }

  static constexpr int kFiles = 65536;
  std::string under_;
  std::string error_;
  int64_t at_;
  bool lasting_, reads_;
  int call_ = -1;
  int journal_ = -1;
  std::atomic<int64_t>* counts_ = nullptr;
  std::array<std::atomic<bool>, kFiles> meant_{};
};

/// The clock stands right, then ahead, then behind, for a few looks each. Apart from Faults, whose beginning maps
/// memory: UCX, which comes with Debian 13's LibTorch, looks at the clock while it exchanges the code of mmap.
int64_t clock_jump() {
  static std::atomic<int64_t> looks{0};
  const auto* text = std::getenv("SGDPH_FAULTS_CLOCK");
  const int64_t seconds = text == nullptr ? 0 : std::atoll(text);
  constexpr std::array<int64_t, 3> kSides{0, 1, -1};
  return seconds == 0 ? 0 : seconds * kSides[static_cast<size_t>(looks++ / 4 % 3)];
}

uint64_t inode_of(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 ? status.st_ino : 0;
}

std::string absolute(int folder, const char* path) {
  if (path[0] == '/') return path;
  std::array<char, PATH_MAX> base{};
  if (folder == AT_FDCWD) {
    if (::getcwd(base.data(), base.size()) == nullptr) return path;
  } else if (::readlink(("/proc/self/fd/" + std::to_string(folder)).c_str(), base.data(), base.size() - 1) < 0) {
    return path;
  }
  return std::string(base.data()) + "/" + path;
}

template <class Opener>
int open_file(int folder, const char* path, int flags, Opener opener) {
  auto& faults = Faults::get();
  const auto name = absolute(folder, path);
  const bool meant = faults.is_meant(name);
  const bool writes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
  if (meant && (writes || faults.minds_reading()) && faults.strikes(Open)) return -1;
  struct stat before {};
  const bool created = meant && writes && ::lstat(name.c_str(), &before) != 0;
  const int file = opener();
  if (file < 0) return file;
  // Folders are opened for reading, to be brought to the disk.
  faults.note(file, meant && (writes || (flags & O_DIRECTORY) != 0));
  if (meant && writes && faults.records()) {
    if (created) faults.record("create", inode_of(file), 0, "", name);
    if ((flags & O_TRUNC) != 0) faults.record("truncate", inode_of(file), 0, "");
  }
  return file;
}

template <class Function>
int change(Call call, const char* what, const std::string& path, const std::string& to, Function function) {
  auto& faults = Faults::get();
  const bool meant = faults.is_meant(to.empty() ? path : to);
  if (meant && faults.strikes(call)) return -1;
  const int result = function();
  if (meant && result == 0) faults.record(what, 0, 0, "", path, to);
  return result;
}

}  // namespace

/// In a process with other variables than it began with (starter.cpp).
void begin_faults_anew() {
  Faults::begin_anew();
}

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const auto mode = va_arg(list, mode_t);
  va_end(list);
  return open_file(AT_FDCWD, path, flags, [&] { return real<int(const char*, int, ...)>("open")(path, flags, mode); });
}
int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const auto mode = va_arg(list, mode_t);
  va_end(list);
  return open_file(
      AT_FDCWD, path, flags, [&] { return real<int(const char*, int, ...)>("open64")(path, flags, mode); });
}

ssize_t write(int file, const void* bytes, size_t count) {
  auto& faults = Faults::get();
  const auto next = real<ssize_t(int, const void*, size_t)>("write");
  if (!faults.is_meant(file)) return next(file, bytes, count);
  if (faults.strikes(Write)) {
    if (errno != 0) return -1;
    count = count > 1 ? count / 2 : count;
  }
  const auto done = next(file, bytes, count);
  if (done > 0 && faults.records()) {
    const auto end = ::lseek(file, 0, SEEK_CUR);
    faults.record("write", inode_of(file), end - done, {static_cast<const char*>(bytes), static_cast<size_t>(done)});
  }
  return done;
}

int fsync(int file) {
  auto& faults = Faults::get();
  const bool meant = faults.is_meant(file);
  if (meant && faults.strikes(Fsync)) return -1;
  // Not done in earnest: tests would wait for disks, and the journal says what would be on them.
  struct stat status {};
  const bool folder = meant && ::fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
  if (meant) faults.record(folder ? "fsync-folder" : "fsync", inode_of(file), 0, "", absolute(file, ""));
  return meant ? 0 : real<int(int)>("fsync")(file);
}

int ftruncate(int file, off_t length) {
  auto& faults = Faults::get();
  const bool meant = faults.is_meant(file);
  if (meant && faults.strikes(Truncate)) return -1;
  const int result = real<int(int, off_t)>("ftruncate")(file, length);
  if (meant && result == 0) faults.record("truncate", inode_of(file), length, "");
  return result;
}

int close(int file) {
  auto& faults = Faults::get();
  const bool meant = faults.is_meant(file);
  faults.note(file, false);
  const bool fails = meant && faults.strikes(Close);
  const int error = errno;
  const int result = real<int(int)>("close")(file);  // the file is closed either way, as by Linux
  if (!fails) return result;
  errno = error;
  return error == 0 ? result : -1;
}

int rename(const char* from, const char* to) {
  return change(Rename, "rename", absolute(AT_FDCWD, from), absolute(AT_FDCWD, to), [&] {
    return real<int(const char*, const char*)>("rename")(from, to);
  });
}
int link(const char* from, const char* to) {
  return change(Link, "link", absolute(AT_FDCWD, from), absolute(AT_FDCWD, to), [&] {
    return real<int(const char*, const char*)>("link")(from, to);
  });
}
int mkdir(const char* path, mode_t mode) {
  return change(Mkdir, "mkdir", absolute(AT_FDCWD, path), "", [&] {
    return real<int(const char*, mode_t)>("mkdir")(path, mode);
  });
}
int unlink(const char* path) {
  return change(Unlink, "unlink", absolute(AT_FDCWD, path), "", [&] { return real<int(const char*)>("unlink")(path); });
}
// The next two remove folders as well.
int remove(const char* path) {
  return change(Unlink, "unlink", absolute(AT_FDCWD, path), "", [&] { return real<int(const char*)>("remove")(path); });
}
int unlinkat(int folder, const char* path, int flags) {
  return change(Unlink, "unlink", absolute(folder, path), "", [&] {
    return real<int(int, const char*, int)>("unlinkat")(folder, path, flags);
  });
}

int clock_gettime(clockid_t clock, timespec* now) {
  const int result = real<int(clockid_t, timespec*)>("clock_gettime")(clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += clock_jump();
  return result;
}
time_t time(time_t* now) {
  timespec precise{};
  ::clock_gettime(CLOCK_REALTIME, &precise);
  if (now != nullptr) *now = precise.tv_sec;
  return precise.tv_sec;
}
int gettimeofday(timeval* now, void*) {
  timespec precise{};
  ::clock_gettime(CLOCK_REALTIME, &precise);
  *now = {precise.tv_sec, precise.tv_nsec / 1000};
  return 0;
}
}
