#include "base/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"

namespace sgdph::lab {

bool is_terminal(int descriptor) {
  return ::isatty(descriptor) != 0;
}

size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string fit_to_terminal(const std::string& text) {
  const auto width = terminal_width() - 1;
  std::string fitted;
  for (size_t from = 0; from <= text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    fitted += text.substr(from, std::min(end - from, width));
    if (end < text.size()) fitted += '\n';
    from = end + 1;
  }
  return fitted;
}

namespace {

/// Why standard output lost something; 0: nothing is lost, or nobody listens.
int output_error = 0;

bool listener_left(int error) {
  return error == EPIPE || error == EIO;
}

}  // namespace

void say(std::FILE* to, const std::string& text) {
  errno = 0;
  const bool taken =
      std::fwrite(text.data(), 1, text.size(), to) == text.size() && (to == stdout || std::fflush(to) == 0);
  if (!taken && to == stdout && !listener_left(errno)) output_error = errno;
}

void outlive_listeners() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // the write fails instead, and is told like a full disk
  // Where one of the three is closed (sgdph ... >&-), the next file that is opened would take its number, and what is
  // said would go into a checkpoint.
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    if (::fcntl(file, F_GETFD) < 0 && errno == EBADF) static_cast<void>(::open("/dev/null", O_RDWR));
  }
}

void show_now() {
  errno = 0;
  if (std::fflush(stdout) != 0 && !listener_left(errno)) output_error = errno;
}

void check_output_arrived() {
  show_now();
  if (output_error != 0)
    throw WriteError(fmt::format("cannot write to standard output: {}", std::strerror(output_error)));
}

}  // namespace sgdph::lab
