#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>

namespace sgdph::lab {

/// A call that a signal may cut off is made again.
template <class Call>
int made(Call call) {
  int result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// How many of the bytes were written; fewer than all if errno says why.
size_t write_all(int file, std::string_view bytes);

/// What a failed write to the file says: the reason, and on a full disk how much room there is and should be.
/// `written` goes to waste, and counts as free.
std::string why_not_written(int error, const std::filesystem::path& path, size_t needed, size_t written = 0);

}  // namespace sgdph::lab
