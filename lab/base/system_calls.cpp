#include "base/system_calls.h"

#include <fmt/format.h>

#include <sys/statvfs.h>
#include <unistd.h>
#include <cstring>

namespace sgdph::lab {
namespace {

namespace fs = std::filesystem;

std::string megabytes(double bytes) {
  return bytes < 1e5 ? fmt::format("{:.1f} kB", bytes / 1e3) : fmt::format("{:.1f} MB", bytes / 1e6);
}

}  // namespace

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

std::string why_not_written(int error, const fs::path& path, size_t needed, size_t written) {
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

}  // namespace sgdph::lab
