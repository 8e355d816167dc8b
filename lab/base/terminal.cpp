#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>

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

}  // namespace sgdph::lab
