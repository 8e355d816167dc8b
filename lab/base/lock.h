#pragma once

#include <filesystem>
#include <string>

namespace sgdph::lab {

/// Holds `path` as a lock file for its lifetime; a UserError if another process does. A killed process holds nothing.
class FileLock {
 public:
  FileLock(std::filesystem::path path, const std::string& activity);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace sgdph::lab
